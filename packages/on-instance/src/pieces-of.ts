import { createReadStream } from 'node:fs';
import { asImageError } from '@nodepool-builder/image-builder/module-kit';
import type { RemoteFile } from './remote-shell.ts';

/**
 * Yields the content of a file for a machine in pieces.
 *
 * @param length maximum length of a piece in bytes; default 64 KiB
 * @throws ImageError `directory-not-usable` if the local file cannot be read
 */
export async function* piecesOf(
  content: RemoteFile['content'],
  length: number = 64 * 1024,
): AsyncGenerator<Buffer, void, undefined> {
  if ('file' in content) {
    try {
      yield* createReadStream(content.file, { highWaterMark: length });
    } catch (error) {
      throw asImageError(error, `reading "${content.file}"`);
    }
    return;
  }
  const bytes = Buffer.from(content.text);
  for (let start = 0; start < bytes.length; start += length) yield bytes.subarray(start, start + length);
}
