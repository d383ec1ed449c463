import { promisify } from 'node:util';
import { constants, gzip, zstdCompress } from 'node:zlib';
import type { OciEntry } from './oci-settings.ts';

export type Compression = OciEntry['compression'];

/**
 * Size of a block before compression, in bytes. Each block becomes its own frame, so that several threads can compress
 * with little memory.
 */
const BLOCK = 4 * 2 ** 20;

/** Max blocks that are compressed concurrently. */
const AHEAD = 3;

const zstd = promisify(zstdCompress);
const zip = promisify(gzip);

const COMPRESS: Readonly<Record<Exclude<Compression, 'none'>, (block: Buffer) => Promise<Buffer>>> = {
  zstd: (block) =>
    zstd(block, {
      params: { [constants.ZSTD_c_compressionLevel]: 3, [constants.ZSTD_c_checksumFlag]: 1 },
    }),
  gzip: (block) => zip(block, { level: 6 }),
};

/** File name extension of a compressed file. */
export const SUFFIXES: Readonly<Record<Compression, string>> = { zstd: '.zst', gzip: '.gz', none: '' };

/**
 * Compresses chunks block by block. A chunk's memory may be reused after the next one is requested. The result depends
 * only on the bytes, not on how they are split into chunks.
 */
export async function* compressed(
  pieces: AsyncIterable<Buffer>,
  compression: Compression,
): AsyncGenerator<Buffer, void, undefined> {
  const compress =
    compression === 'none' ? async (block: Buffer) => await Promise.resolve(block) : COMPRESS[compression];
  const ahead: Promise<Buffer>[] = [];
  for await (const block of blocksOf(pieces)) {
    const next = compress(block);
    next.catch(() => {}); // The error is handled when this block is yielded.
    ahead.push(next);
    if (ahead.length >= AHEAD) yield (await ahead.shift()) as Buffer;
  }
  for (const next of ahead) yield await next;
}

/** Copies chunks into blocks of equal length; the last block may be shorter. */
async function* blocksOf(pieces: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void, undefined> {
  let block = Buffer.allocUnsafe(BLOCK);
  let length = 0;
  for await (const piece of pieces) {
    for (let start = 0; start < piece.length; ) {
      const copied = piece.copy(block, length, start);
      start += copied;
      length += copied;
      if (length < BLOCK) continue;
      yield block;
      block = Buffer.allocUnsafe(BLOCK);
      length = 0;
    }
  }
  if (length > 0) yield block.subarray(0, length);
}

/** A file or a directory in a tar. */
interface TarEntry {
  readonly name: string;
  readonly mode: number;
  readonly size: number;
  readonly isDirectory?: boolean;
}

/** User and group id of qemu in KubeVirt, which reads the disk. */
const QEMU = 107;

const RECORD = 512;

/** Yields a tar with the disk at `disk/<name>`, as KubeVirt expects it. */
export async function* containerDisk(
  name: string,
  size: number,
  pieces: AsyncIterable<Buffer>,
): AsyncGenerator<Buffer, void, undefined> {
  yield tarHeader({ name: 'disk/', mode: 0o555, size: 0, isDirectory: true });
  yield tarHeader({ name: `disk/${name}`, mode: 0o440, size });
  yield* pieces;
  yield Buffer.alloc(((RECORD - (size % RECORD)) % RECORD) + 2 * RECORD);
}

/**
 * Builds a GNU tar header, which supports sizes from 8 GiB. All times are 0, so that the same disk always has the same
 * digest.
 */
function tarHeader({ name, mode, size, isDirectory = false }: TarEntry): Buffer {
  const header = Buffer.alloc(RECORD);
  const octal = (value: number, at: number, length: number): void => {
    header.write(value.toString(8).padStart(length - 1, '0'), at, 'latin1');
  };
  if (Buffer.byteLength(name) > 100) throw new Error(`"${name}" is too long for a tar header`);
  header.write(name, 0);
  octal(mode, 100, 8);
  octal(QEMU, 108, 8);
  octal(QEMU, 116, 8);
  if (size < 8 ** 11) octal(size, 124, 12);
  else {
    header.writeUInt8(0x80, 124);
    header.writeBigUInt64BE(BigInt(size), 128);
  }
  octal(0, 136, 12);
  header.write('        ', 148);
  header.write(isDirectory ? '5' : '0', 156);
  header.write('ustar  ', 257);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return header;
}
