import type { Checksums, OperationOptions } from './types.ts';
import { createDigester } from './upload-source/create-digester.ts';
import { readPieces } from './upload-source/read-pieces.ts';
import { SteadyFile } from './upload-source/steady-file.ts';

/**
 * Reads a file once for both digests. `onProgress` counts bytes.
 *
 * @throws ImageError `image-changed`, `image-missing`, `directory-not-usable`
 * @throws the signal's reason
 */
export async function checksumsOf(
  path: string,
  { signal, onProgress }: OperationOptions = {},
): Promise<Checksums> {
  const file = await SteadyFile.open(path);
  const digester = createDigester(['md5', 'sha256'], file.size);
  try {
    let done = 0;
    for await (const { length } of readPieces(file, digester)) {
      signal?.throwIfAborted();
      done += length;
      onProgress?.({ done, total: file.size });
    }
    return await digester.digest();
  } finally {
    await digester.close();
    await file.close();
  }
}
