import { lstat, readdir } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { unlessMissing } from '../system-error.ts';
import type { Leftover } from '../types.ts';
import { removePartial, uploadOf } from './partial-file.ts';

/** Temporary files of uploads, including those that are being written. */
export async function listPartials(directory: string): Promise<readonly Leftover[]> {
  const found: Leftover[] = [];
  for (const name of await readdir(directory)) {
    const uploadId = uploadOf(name);
    if (uploadId === undefined) continue;
    const path = join(directory, name);
    const leftover = await leftoverFile(path, uploadId, () => removePartial(directory, path));
    if (leftover !== undefined) found.push(leftover);
  }
  return found;
}

/** A file left by an aborted upload or deletion; undefined if it is gone. */
export async function leftoverFile(
  path: string,
  uploadId: string,
  removeFile: () => Promise<void>,
): Promise<Leftover | undefined> {
  const state = await unlessMissing(lstat(path));
  if (state === undefined) return undefined;
  const remove = async (): Promise<boolean> => {
    if ((await unlessMissing(lstat(path)))?.mtimeMs !== state.mtimeMs) return false;
    await removeFile();
    return true;
  };
  return { uploadId, subject: `file ${basename(path)}`, changedAt: state.mtime, remove };
}
