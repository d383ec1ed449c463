import { type FileHandle, open } from 'node:fs/promises';
import { crc32 } from 'node:zlib';
import { ImageError } from '@nodepool-builder/image-builder';
import { Digester, STATE_FILE } from '@nodepool-builder/image-builder/module-kit';
import type { DiskSpaceGuard } from './disk-space-guard.ts';
import type { Spool } from './spool.ts';
import { type Unpacked, UnpackedFile } from './unpacked-file.ts';
import { type Coding, UNPACKING } from './unpacking.ts';

/** Settings of {@link unpackObject}. */
export interface Unpacking {
  readonly spool: Spool;
  /** Absent if the object is the file itself. */
  readonly coding: Coding | undefined;
  /** Where the unpacked file goes; the spool's own if there is nothing to unpack. */
  readonly file: string;
  /** The artifact in messages. */
  readonly name: string;
  /** Most bytes of the unpacked file. */
  readonly limit: number;
  readonly space: DiskSpaceGuard;
  readonly withCrc32: boolean;
  readonly signal: AbortSignal;
  /** Called with how many bytes of the object have been unpacked. */
  readonly onProgress: (done: number) => void;
}

/** What became of an object. */
export interface UnpackedObject extends Unpacked {
  /** Of the object as it is stored; absent if nobody asked for it. */
  readonly crc32: number | undefined;
}

/**
 * Unpacks and digests an object behind those who fetch it.
 *
 * @throws ImageError `artifact-damaged`, `artifact-too-large`, `disk-full`, `command-not-found`
 * @throws the signal's reason
 */
export async function unpackObject(unpacking: Unpacking): Promise<UnpackedObject> {
  const { spool, coding, name, limit, space } = unpacking;
  // Of a packed object nobody knows how large it gets.
  const size = coding === undefined ? spool.size : undefined;
  const digester = new Digester(size);
  const stored = new StoredBytes(unpacking);
  let file: FileHandle | undefined;
  let unpacked: UnpackedFile | undefined;
  try {
    file = coding === undefined ? undefined : await open(unpacking.file, 'w', STATE_FILE);
    unpacked = new UnpackedFile({ file, digester, name, limit, space });
    for await (const bytes of unpack(stored.pieces(), unpacking)) await unpacked.write(bytes);
    return { ...(await unpacked.finish()), crc32: stored.crc32 };
  } finally {
    await unpacked?.settle();
    await digester.close();
    await file?.close();
  }
}

/** The bytes of an object on their way to be unpacked. */
class StoredBytes {
  crc32: number | undefined;
  readonly #unpacking: Unpacking;

  constructor(unpacking: Unpacking) {
    this.#unpacking = unpacking;
    this.crc32 = unpacking.withCrc32 ? 0 : undefined;
  }

  async *pieces(): AsyncGenerator<Buffer, void, undefined> {
    const { spool, signal, onProgress } = this.#unpacking;
    let done = 0;
    for await (const piece of spool.pieces(signal)) {
      if (this.crc32 !== undefined) this.crc32 = crc32(piece, this.crc32);
      yield piece;
      done += piece.length;
      onProgress(done);
    }
  }
}

async function* unpack(
  stored: AsyncIterable<Buffer>,
  { coding, name, signal }: Unpacking,
): AsyncGenerator<Buffer, void, undefined> {
  if (coding === undefined) {
    yield* stored;
    return;
  }
  try {
    yield* UNPACKING[coding](stored, signal);
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof Error) || error instanceof ImageError || 'syscall' in error) throw error;
    const message = `${name} cannot be unpacked as ${coding}: ${error.message}; run the job that builds it again`;
    throw new ImageError('artifact-damaged', message, { cause: error });
  }
}
