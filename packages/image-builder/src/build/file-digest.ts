import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { lstat, readdir, readlink, stat } from 'node:fs/promises';
import { join } from 'node:path';

/** Limits of {@link directoryDigest}. */
const MAX_FILES = 2_000;
const MAX_BYTES = 64 * 2 ** 20;

/**
 * Returns the SHA-256 of a regular file in hexadecimal; undefined if it cannot be read, is not a regular file, or is
 * larger than the limit.
 *
 * @throws the signal's reason
 */
export async function fileDigest(
  path: string,
  { limit, signal }: { readonly limit: number; readonly signal: AbortSignal },
): Promise<string | undefined> {
  signal.throwIfAborted();
  try {
    const state = await stat(path);
    if (!state.isFile() || state.size > limit) return undefined;
    const hash = createHash('sha256');
    // A growing file is read up to the limit.
    const pieces = createReadStream(path, { end: limit, signal, highWaterMark: 2 ** 20 });
    let size = 0;
    for await (const piece of pieces as AsyncIterable<Buffer>) {
      size += piece.length;
      hash.update(piece);
    }
    return size > limit ? undefined : hash.digest('hex');
  } catch {
    signal.throwIfAborted();
    return undefined;
  }
}

/**
 * Returns in-toto's `dirHash`, which is the hash of Go's modules (`h1:`) in hexadecimal. A symbolic link counts as a
 * file whose content is its target. Returns undefined for a large directory, or one that cannot be read.
 *
 * @throws the signal's reason
 */
export async function directoryDigest(directory: string, signal: AbortSignal): Promise<string | undefined> {
  try {
    const lines: string[] = [];
    let bytes = 0;
    const names = (await readdir(directory, { recursive: true })).toSorted();
    if (names.length > MAX_FILES) return undefined;
    for (const name of names) {
      const path = join(directory, name);
      const state = await lstat(path);
      if (state.isDirectory()) continue;
      bytes += state.size;
      if (bytes > MAX_BYTES || name.includes('\n')) return undefined;
      const digest = state.isSymbolicLink()
        ? createHash('sha256')
            .update(await readlink(path))
            .digest('hex')
        : await fileDigest(path, { limit: MAX_BYTES, signal });
      if (digest === undefined) return undefined;
      lines.push(`${digest}  ${name}\n`);
    }
    return createHash('sha256').update(lines.join('')).digest('hex');
  } catch {
    signal.throwIfAborted();
    return undefined;
  }
}
