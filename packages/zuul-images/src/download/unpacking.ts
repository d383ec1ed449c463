import { extname } from 'node:path';
import { promisify } from 'node:util';
import { createGunzip, createZstdDecompress, type Gunzip, type ZstdDecompress } from 'node:zlib';
import { ImageError } from '@nodepool-builder/image-builder';
import { errnoOf, inheritedEnvironment, startError } from '@nodepool-builder/image-builder/internal';
import { nameOf } from './artifact-url.ts';

/** Compression of an object. */
export type Coding = 'zstd' | 'xz' | 'gzip';

/** Codings by the suffix of a URL's path, and by the value of Content-Encoding. */
const SUFFIXES: Readonly<Record<string, Coding>> = { '.zst': 'zstd', '.xz': 'xz', '.gz': 'gzip' };
const ENCODINGS: Readonly<Record<string, Coding>> = { gzip: 'gzip', 'x-gzip': 'gzip', zstd: 'zstd' };

/**
 * Returns the coding of the received bytes. Some servers repeat the suffix of a file as its encoding; others compress a
 * file themselves.
 *
 * @param url any query is ignored
 * @throws ImageError `artifact-refused`
 */
export function codingOf(url: string, contentEncoding: string | undefined): Coding | undefined {
  const name = nameOf(url);
  const bySuffix = SUFFIXES[extname(name).toLowerCase()];
  if (contentEncoding === undefined || isIdentity(contentEncoding)) return bySuffix;
  const byServer = ENCODINGS[contentEncoding];
  if (byServer !== undefined && (bySuffix ?? byServer) === byServer) return byServer;
  throw new ImageError(
    'artifact-refused',
    `${name} is sent with the encoding "${contentEncoding}"; configure the server to send the file as it is stored`,
  );
}

/** Returns whether a server sends a file as it is stored. */
export function isIdentity(contentEncoding: string = 'identity'): boolean {
  return contentEncoding === 'identity';
}

/** Returns the name of a URL, without the suffix of a compressed file. */
export function unpackedName(url: string): string {
  const name = nameOf(url);
  const suffix = extname(name);
  return suffix.toLowerCase() in SUFFIXES ? name.slice(0, -suffix.length) : name;
}

/** Maximum number of bytes that are unpacked at a time. */
const CHUNK_SIZE = 256 * 1024;

/**
 * A skippable frame, longer than any block. Node 22 accepts a truncated zstd frame. Followed by these bytes, the frame
 * continues with a block of an invalid type, which is an error.
 */
const AFTER_THE_LAST_FRAME = Buffer.alloc(8 + 2 ** 18, 0xff);
AFTER_THE_LAST_FRAME.writeUInt32LE(0x184d2a50, 0);
AFTER_THE_LAST_FRAME.writeUInt32LE(2 ** 18, 4);

/**
 * Unpacks an object.
 *
 * @param packed pieces whose memory is reused for the next piece
 */
export function unpack(
  coding: Coding,
  packed: AsyncIterable<Buffer>,
  signal: AbortSignal,
): AsyncIterable<Buffer> {
  if (coding === 'xz') return unpackByXz(packed, signal);
  if (coding === 'gzip') return unpackByZlib(packed, () => createGunzip({ chunkSize: CHUNK_SIZE }));
  // Node's default permits a window of 128 MiB, like `zstd`, which limits the memory.
  return unpackByZlib(withEnd(packed), () => createZstdDecompress({ chunkSize: CHUNK_SIZE }));
}

async function* withEnd(packed: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void, undefined> {
  yield* packed;
  yield AFTER_THE_LAST_FRAME;
}

/** Unpacks one frame after the other, because Node's zstd ends with the first frame and ignores the rest. */
async function* unpackByZlib(
  packed: AsyncIterable<Buffer>,
  create: () => Gunzip | ZstdDecompress,
): AsyncGenerator<Buffer, void, undefined> {
  const pieces = packed[Symbol.asyncIterator]();
  let rest: Buffer | undefined;
  for (;;) {
    const first: Buffer | undefined = rest ?? (await nextOf(pieces));
    if (first === undefined) return;
    const decoder = create();
    const feeding = feed(decoder, first, pieces);
    feeding.catch(() => {}); // the reader of the decoder receives the error
    yield* decoder as AsyncIterable<Buffer>;
    rest = await feeding;
  }
}

/**
 * Writes pieces to a decoder until its frame ends.
 *
 * @returns the rest of the last piece
 */
async function feed(
  decoder: Gunzip | ZstdDecompress,
  first: Buffer,
  pieces: AsyncIterator<Buffer>,
): Promise<Buffer | undefined> {
  const write = promisify(
    (piece: Buffer, taken: (error?: Error | null) => void) => void decoder.write(piece, taken),
  );
  try {
    for (let piece: Buffer | undefined = first; piece !== undefined; piece = await nextOf(pieces)) {
      const end = decoder.bytesWritten + piece.length;
      await write(piece);
      // At the end of a frame, the decoder leaves the rest of the piece.
      if (decoder.bytesWritten < end) return piece.subarray(piece.length - (end - decoder.bytesWritten));
    }
    decoder.end();
  } catch (error) {
    decoder.destroy(error instanceof Error ? error : new Error(String(error)));
    throw error;
  }
  return undefined;
}

async function nextOf(pieces: AsyncIterator<Buffer>): Promise<Buffer | undefined> {
  const { done, value } = await pieces.next();
  return done === true ? undefined : value;
}

/** Arguments of xz. `xz -9` needs 65 MiB of memory to unpack, and several times as much with several threads. */
const XZ_ARGUMENTS = ['--decompress', '--stdout', '--quiet', '--memlimit-decompress=512MiB'];

/** Unpacks with the program `xz`, because Node does not support it. */
async function* unpackByXz(
  packed: AsyncIterable<Buffer>,
  signal: AbortSignal,
): AsyncGenerator<Buffer, void, undefined> {
  const { execa, ExecaError } = await import('execa'); // imported on demand, as in process/command.ts
  let inputError: Error | undefined;
  async function* copies(): AsyncGenerator<Buffer, void, undefined> {
    try {
      for await (const piece of packed) yield Buffer.from(piece);
    } catch (error) {
      inputError = error as Error;
      throw error;
    }
  }
  const xz = execa('xz', XZ_ARGUMENTS, {
    stdin: copies(),
    buffer: false,
    env: inheritedEnvironment(),
    extendEnv: false,
    cancelSignal: signal,
    killSignal: 'SIGKILL',
  });
  let stderr = '';
  xz.stderr.on('data', (text: Buffer) => (stderr += String(text)));
  xz.catch(() => {}); // a reader that stops early does not wait for it
  try {
    yield* xz.stdout as AsyncIterable<Buffer>;
    await xz;
  } catch (error) {
    signal.throwIfAborted();
    if (inputError !== undefined) throw inputError;
    if (!(error instanceof ExecaError)) throw error;
    const code = errnoOf(error);
    if (code === 'ENOENT') {
      const message = 'the command "xz" is not installed; install xz-utils';
      throw new ImageError('command-not-found', message, { cause: error });
    }
    const { exitCode, signal: killedBy } = error;
    if (exitCode === undefined && killedBy === undefined) throw startError('xz', '/', { code, cause: error });
    const reason = `xz ended with ${killedBy ?? `exit code ${exitCode}`}`;
    throw new Error(stderr.trim() || reason, { cause: error });
  } finally {
    xz.kill();
  }
}
