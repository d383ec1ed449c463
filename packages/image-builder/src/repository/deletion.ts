import { readdir, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { removeTree } from '../cleanup/privileged.ts';
import { syncToDisk } from '../durable.ts';
import { FORMAT_NAMES, formatRow } from '../formats.ts';
import { STATE_FILE } from '../modes.ts';
import { errnoOf, unlessMissing } from '../system-error.ts';
import type { Layout } from './layout.ts';

/** Suffixes after `<image-id>.` of the names of an image's files. */
const SUFFIXES: ReadonlySet<string> = new Set([
  'd',
  'md5',
  'sha256',
  // Left by a disk-image-create that was killed while it wrote into images-dir.
  'vhd-intermediate',
  'vhd-intermediate.bak',
  ...FORMAT_NAMES.flatMap((format) => {
    const { extension } = formatRow(format);
    return [extension, `${extension}.md5`, `${extension}.sha256`, `${extension}-new`];
  }),
]);

/** Whether a file name belongs to the image. */
export function belongsTo(imageId: string, name: string): boolean {
  return name.startsWith(`${imageId}.`) && SUFFIXES.has(name.slice(imageId.length + 1));
}

/**
 * Moves all files of an image from `images-dir` into the trash. After a crash {@link beganDeletes} returns the image,
 * so that the delete is completed.
 */
export async function withdraw(layout: Layout, imageId: string): Promise<void> {
  await mark(join(layout.deletes, imageId));
  try {
    const names = (await readdir(layout.root)).filter((name) => belongsTo(imageId, name));
    for (const name of names) {
      await removeTree(join(layout.trash, name));
      await rename(join(layout.root, name), join(layout.trash, name));
    }
    await rm(layout.manifest(imageId), { force: true });
  } catch (error) {
    await rm(join(layout.deletes, imageId), { force: true });
    throw error;
  }
  await unlessMissing(rename(join(layout.deletes, imageId), join(layout.deleted, imageId)));
}

/** Removes the files that {@link withdraw} moved, which takes time for big files. */
export async function emptyTrash(layout: Layout, imageId?: string): Promise<void> {
  const names = await readdir(layout.trash);
  for (const name of names) {
    if (imageId === undefined || belongsTo(imageId, name)) await removeTree(join(layout.trash, name));
  }
}

/** Images whose delete was interrupted by a crash. */
export async function beganDeletes(layout: Layout): Promise<string[]> {
  return await readdir(layout.deletes);
}

/** Deleted images whose delete job may be assigned again. */
export async function endedDeletes(layout: Layout): Promise<string[]> {
  return await readdir(layout.deleted);
}

/** Removes the record of a delete that has ended. */
export async function forget(layout: Layout, imageId: string): Promise<void> {
  await rm(join(layout.deleted, imageId), { force: true });
}

async function mark(path: string): Promise<void> {
  try {
    await writeFile(path, '', { mode: STATE_FILE });
    await syncToDisk(dirname(path));
  } catch (error) {
    // A full disk must not prevent a delete. A crash during this one leaves some formats, each of them complete.
    if (!['ENOSPC', 'EDQUOT'].includes(errnoOf(error) ?? '')) throw error;
  }
}
