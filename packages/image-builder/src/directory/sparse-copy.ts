import { open } from 'node:fs/promises';
import type { BandwidthLimit } from '../bandwidth-limit.ts';
import { HashedReader } from '../hashed-reader.ts';
import { metered } from '../metered.ts';
import { writeSparse } from '../sparse.ts';
import type { Checksums, OperationOptions } from '../types.ts';
import { PUBLISHED } from './partial-file.ts';

/** Settings of {@link sparseCopy}. */
export interface CopyOptions extends OperationOptions {
  /** Shared by copies at the same time. Default: none. */
  readonly limit?: BandwidthLimit | undefined;
}

/**
 * Copies a file, leaves holes where it holds only zeros, and hashes it on the way: each byte is read once, in constant
 * memory. `target` is flushed to the disk before the promise resolves.
 *
 * @returns the digests of the copy
 * @throws ImageError `image-changed` if the source changes meanwhile, `image-missing`
 */
export async function sparseCopy(
  source: string,
  target: string,
  { limit, signal = new AbortController().signal, ...options }: CopyOptions = {},
): Promise<Checksums> {
  // A deletion does not wait for copies.
  const from = await HashedReader.open(source, { ...options, signal, mayBeRemoved: true });
  try {
    const to = await open(target, 'wx', PUBLISHED);
    try {
      let position = 0;
      for await (const piece of metered(from.pieces(), { onBytes: () => {}, limit, signal })) {
        await writeSparse(to, piece, position);
        position += piece.length;
      }
      await to.truncate(position); // a hole at the end has no bytes to write
      await to.sync();
    } finally {
      await to.close();
    }
    return await from.checksums;
  } finally {
    await from.close();
  }
}
