import type { Stats } from 'node:fs';
import { lstat, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type Leftover, unlessMissing } from '@nodepool-builder/image-builder';
import { manifestPath } from './manifest.ts';
import { sharedUploadOf } from './partial-file.ts';

/** The temporary files of shared uploads, those that are being written among them. */
export async function listPartials(directory: string): Promise<readonly Leftover[]> {
  const found: Leftover[] = [];
  for (const name of await readdir(directory)) {
    const uploadId = sharedUploadOf(name);
    const path = join(directory, name);
    const state = uploadId === undefined ? undefined : await unlessMissing(lstat(path));
    if (uploadId === undefined || state === undefined) continue;
    const remove = (): Promise<boolean> => removePartial(directory, path, state);
    found.push({ uploadId, subject: `file ${name}`, changedAt: state.mtime, remove });
  }
  return found;
}

/** Removes a temporary file, and the name that it has already got as an image, if there is no manifest of that. */
async function removePartial(directory: string, path: string, { mtimeMs, ino }: Stats): Promise<boolean> {
  const now = await unlessMissing(lstat(path));
  if (now?.mtimeMs !== mtimeMs) return false;
  const names = now.nlink > 1 ? new Set(await readdir(directory)) : new Set<string>();
  for (const name of names) {
    const image = join(directory, name);
    if (image === path || names.has(manifestPath(name))) continue;
    if ((await unlessMissing(lstat(image)))?.ino === ino) await rm(image, { force: true });
  }
  await rm(path, { force: true });
  return true;
}
