import { createHash } from 'node:crypto';
import { readdir, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { ImageError, makeStateDirectory, unlessMissing } from '@nodepool-builder/image-builder';
import { nameOf } from './artifact-url.ts';

/**
 * The directory of what there is of one artifact, which is made. Another signature in the query of the URL is the
 * same artifact still.
 *
 * @throws ImageError `directory-not-usable` if the finished file could not be moved from there to its destination
 */
export async function stateOf(url: URL, stateDirectory: string, destination: string): Promise<string> {
  const path = join(stateDirectory, createHash('sha256').update(nameOf(url)).digest('hex').slice(0, 32));
  await makeStateDirectory(path);
  const [state, target] = await Promise.all([stat(path), stat(dirname(destination))]);
  if (state.dev === target.dev) return path;
  throw new ImageError(
    'directory-not-usable',
    `"${stateDirectory}" and "${destination}" are on two file systems; let the state of downloads lie where images do`,
  );
}

/** Removes what is left of downloads that nobody has gone on with since then. */
export async function clearDownloads(stateDirectory: string, since: Date): Promise<void> {
  for (const name of (await unlessMissing(readdir(stateDirectory))) ?? []) {
    const path = join(stateDirectory, name);
    const journal = (await unlessMissing(stat(join(path, 'journal')))) ?? (await unlessMissing(stat(path)));
    if (journal !== undefined && journal.mtime < since) await rm(path, { recursive: true, force: true });
  }
}
