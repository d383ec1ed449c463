import { createHash } from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';
import type { Checksums, OperationOptions } from '@nodepool-builder/image-builder';

/** How much is read at once: large enough for the disk, small enough that hashing it does not hold up the event loop. */
const CHUNK = 512 * 1024;

/** A run of zeros at least this long becomes a hole; the block size of nearly every file system. */
const HOLE = 4096;

const ZEROS = Buffer.alloc(CHUNK);

/**
 * Copies a file, leaves holes where it holds only zeros, and hashes it on the way: each byte is read once,
 * in constant memory. `target` is flushed to the disk before the promise resolves.
 *
 * @returns the digests of what was read.
 */
export async function sparseCopy(
  source: string,
  target: string,
  { signal, onProgress }: OperationOptions = {},
): Promise<Checksums> {
  const md5 = createHash('md5');
  const sha256 = createHash('sha256');
  const from = await open(source, 'r');
  try {
    const to = await open(target, 'wx');
    try {
      const { size } = await from.stat();
      const buffer = Buffer.allocUnsafe(CHUNK);
      let position = 0;
      for (;;) {
        signal?.throwIfAborted();
        const { bytesRead } = await from.read(buffer, 0, CHUNK, position);
        if (bytesRead === 0) break;
        const chunk = buffer.subarray(0, bytesRead);
        md5.update(chunk);
        sha256.update(chunk);
        await writeData(to, chunk, position);
        position += bytesRead;
        onProgress?.({ done: position, total: size });
      }
      await to.truncate(position); // a hole at the end has no bytes to write
      await to.sync();
    } finally {
      await to.close();
    }
  } finally {
    await from.close();
  }
  return { md5: md5.digest('hex'), sha256: sha256.digest('hex') };
}

/** Writes what is not zero; skipping the rest leaves it a hole. */
async function writeData(to: FileHandle, chunk: Buffer, position: number): Promise<void> {
  let start = 0;
  while (start < chunk.length) {
    const zeros = zerosAt(chunk, start);
    if (zeros > 0) {
      start += zeros;
      continue;
    }
    let end = start + HOLE;
    while (end < chunk.length && zerosAt(chunk, end) === 0) end += HOLE;
    const data = chunk.subarray(start, end);
    for (let written = 0; written < data.length; ) {
      const { bytesWritten } = await to.write(
        data,
        written,
        data.length - written,
        position + start + written,
      );
      written += bytesWritten;
    }
    start = end;
  }
}

/** The length of the block at `start` if it is all zeros, else 0. A whole empty chunk counts as one block. */
function zerosAt(chunk: Buffer, start: number): number {
  if (start === 0 && chunk.equals(ZEROS.subarray(0, chunk.length))) return chunk.length;
  const end = Math.min(start + HOLE, chunk.length);
  return chunk.compare(ZEROS, 0, end - start, start, end) === 0 ? end - start : 0;
}
