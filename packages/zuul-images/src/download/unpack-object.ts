import { type FileHandle, open, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { crc32 } from 'node:zlib';
import { type Checksums, ImageError } from '@nodepool-builder/image-builder';
import { Digester, STATE_FILE, writeSparse } from '@nodepool-builder/image-builder/internal';
import { steadyProgress } from '@nodepool-builder/image-builder/plugin';
import type { Transfer } from './transfer.ts';
import { type Coding, unpack } from './unpacking.ts';

/** An unpacked object. */
export interface UnpackedObject {
  /** Size in bytes, holes included. */
  readonly size: number;
  readonly checksums: Checksums;
  /** Checksum of the stored object; zero if the request has none. */
  readonly crc32: number;
}

/**
 * Unpacks and digests an object while it is fetched.
 *
 * @param coding undefined if the object is not compressed
 * @param path path of the unpacked file; the spool's path if the object is not compressed
 * @throws ImageError `artifact-damaged`, `artifact-too-large`, `disk-full`, `command-not-found`
 */
export async function unpackObject(
  transfer: Transfer,
  coding: Coding | undefined,
  path: string,
  signal: AbortSignal,
): Promise<UnpackedObject> {
  const { source, object, spool, request, options } = transfer;
  const progress = options.onProgress && steadyProgress(options.onProgress);
  // The unpacked size of a compressed object is unknown.
  const expected = coding === undefined ? spool.size : undefined;
  const digester = new Digester(expected);
  let file: FileHandle | undefined;
  let checksum = 0;
  async function* stored(): AsyncGenerator<Buffer, void, undefined> {
    let done = 0;
    for await (const piece of spool.pieces(signal)) {
      if (request.crc32 !== undefined) checksum = crc32(piece, checksum);
      yield piece;
      done += piece.length;
      progress?.({ done, total: object.size ?? 0 });
    }
  }
  try {
    file = coding === undefined ? undefined : await open(path, 'w', STATE_FILE);
    const chunks = coding === undefined ? stored() : unpacked(coding, stored(), source.name, signal);
    const size = await digestChunks(chunks, digester, transfer, async (bytes, position) => {
      await checkFreeSpace(path, request.leaveFree);
      if (file !== undefined) await writeSparse(file, bytes, position);
    });
    await file?.truncate(size); // the end may be a hole
    const checksums = await digester.digest();
    return { size, checksums, crc32: checksum };
  } finally {
    await digester.close();
    await file?.close();
  }
}

async function* unpacked(
  coding: Coding,
  stored: AsyncIterable<Buffer>,
  name: string,
  signal: AbortSignal,
): AsyncGenerator<Buffer, void, undefined> {
  try {
    yield* unpack(coding, stored, signal);
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof Error) || error instanceof ImageError || 'syscall' in error) throw error;
    const message = `${name} cannot be unpacked as ${coding}: ${error.message}; run the job that builds it again`;
    throw new ImageError('artifact-damaged', message, { cause: error });
  }
}

/**
 * Digests and writes chunks in one pass. The memory of the digester limits the data in flight.
 *
 * @returns the number of bytes, once all of them are written
 */
async function digestChunks(
  chunks: AsyncIterable<Buffer>,
  digester: Digester,
  { source, request: { maxSize } }: Transfer,
  write: (bytes: Buffer, position: number) => Promise<void>,
): Promise<number> {
  const failed = new AbortController();
  let settled = Promise.resolve();
  let slot = await digester.slot();
  let filled = 0;
  let size = 0;
  const flush = (): void => {
    const written = write(slot.bytes.subarray(0, filled), size).catch((error: unknown) =>
      failed.abort(error),
    );
    const done = Promise.all([digester.update(slot, filled), written]);
    slot.done = done;
    settled = settled.then(async () => void (await done));
    size += filled;
    filled = 0;
  };
  try {
    for await (const chunk of chunks) {
      failed.signal.throwIfAborted();
      if (size + filled + chunk.length > maxSize) throw tooLarge(source.name, maxSize);
      for (let taken = 0; taken < chunk.length; ) {
        const copied = chunk.copy(slot.bytes, filled, taken);
        taken += copied;
        filled += copied;
        if (filled < slot.bytes.length) continue;
        flush();
        slot = await digester.slot();
      }
    }
    flush();
  } finally {
    await settled;
  }
  failed.signal.throwIfAborted();
  return size;
}

/**
 * Checks the free space of the file system of a path.
 *
 * @throws ImageError `disk-full`
 */
export async function checkFreeSpace(path: string, needed: number): Promise<void> {
  const directory = dirname(path);
  const { bavail, bsize } = await statfs(directory);
  const missing = needed - bavail * bsize;
  if (missing <= 0) return;
  throw new ImageError(
    'disk-full',
    `an artifact does not fit into "${directory}": ${missing} more bytes must be free; free space there`,
  );
}

/** Error for an artifact above the size limit. */
export function tooLarge(name: string, limit: number): ImageError {
  return new ImageError(
    'artifact-too-large',
    `${name} has more than ${limit} bytes when it is unpacked; make the image smaller, or raise virtual-size-limit`,
  );
}
