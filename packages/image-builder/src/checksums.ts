import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import type { Checksums, OperationOptions } from './types.ts';

/** Bytes per step: hashing one takes less than a millisecond of the event loop. */
const CHUNK_SIZE = 256 * 1024;

/** Reads a file once for both digests. `onProgress` counts bytes of `size`. */
export async function checksumsOf(
  path: string,
  size: number,
  { signal, onProgress }: OperationOptions = {},
): Promise<Checksums> {
  const md5 = createHash('md5');
  const sha256 = createHash('sha256');
  let done = 0;
  const stream: AsyncIterable<Buffer> = createReadStream(path, { highWaterMark: CHUNK_SIZE });
  for await (const chunk of stream) {
    signal?.throwIfAborted();
    md5.update(chunk);
    sha256.update(chunk);
    done += chunk.length;
    onProgress?.({ done, total: size });
  }
  return { md5: md5.digest('hex'), sha256: sha256.digest('hex') };
}
