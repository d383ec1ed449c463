import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { unlessMissing } from '../system-error.ts';
import { type DirectoryManifest, imageOfManifest, readManifest } from './manifest.ts';

/**
 * An image's manifest, and whether its file exists: a regular file of that size. If it does not, an upload
 * or a deletion was cut short.
 */
export interface Entry {
  readonly externalId: string;
  readonly manifest: DirectoryManifest;
  readonly isWhole: boolean;
}

/** All manifests of ours in a directory. */
export async function readEntries(directory: string): Promise<readonly Entry[]> {
  const names = new Set(await readdir(directory));
  const found: Entry[] = [];
  for (const name of names) {
    const externalId = imageOfManifest(name);
    if (externalId === undefined) continue;
    const manifest = await readManifest(join(directory, externalId));
    if (manifest === undefined) continue;
    const state = await unlessMissing(lstat(join(directory, externalId)));
    const isWhole = state?.isFile() === true && state.size > 0 && state.size === manifest.size;
    found.push({ externalId, manifest, isWhole });
  }
  return found;
}

/** Complete images of ours. */
export async function readWholeImages(directory: string): Promise<readonly Entry[]> {
  return (await readEntries(directory)).filter(({ isWhole }) => isWhole);
}
