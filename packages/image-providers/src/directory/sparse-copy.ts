import { createHash } from 'node:crypto';
import { open } from 'node:fs/promises';
import { type Checksums, type OperationOptions, writeSparse } from '@nodepool-builder/image-builder';
import { PUBLISHED } from './partial-file.ts';

/** How much is read at once: large enough for the disk, small enough that hashing it does not hold up the event loop. */
const CHUNK = 512 * 1024;

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
    const to = await open(target, 'wx', PUBLISHED);
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
        await writeSparse(to, chunk, position);
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
