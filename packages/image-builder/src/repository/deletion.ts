import { readdir, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { removeTree } from '../cleanup/privileged.ts';
import { syncToDisk } from '../durable.ts';
import { FORMAT_NAMES, formatRow } from '../formats.ts';
import { STATE_FILE } from '../modes.ts';
import { errnoOf, unlessMissing } from '../system-error.ts';
import type { Layout } from './layout.ts';

/** What may follow `<image-id>.` in the names of an image's files. */
const SUFFIXES: ReadonlySet<string> = new Set([
  'd',
  'md5',
  'sha256',
  // What disk-image-create leaves when it is killed while it writes into images-dir.
  'vhd-intermediate',
  'vhd-intermediate.bak',
  ...FORMAT_NAMES.flatMap((format) => {
    const { extension } = formatRow(format);
    return [extension, `${extension}.md5`, `${extension}.sha256`, `${extension}-new`];
  }),
]);

/** Whether the file called `name` belongs to the image. */
export function belongsTo(imageId: string, name: string): boolean {
  return name.startsWith(`${imageId}.`) && SUFFIXES.has(name.slice(imageId.length + 1));
}

/**
 * Takes all files of an image out of `images-dir`, into the trash. From its first step on a crash does not stop
 * it: {@link beganDeletes} then has the image.
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

/** Removes what {@link withdraw} moved: that takes time, for big files. */
export async function emptyTrash(layout: Layout, imageId?: string): Promise<void> {
  const names = await readdir(layout.trash);
  for (const name of names) {
    if (imageId === undefined || belongsTo(imageId, name)) await removeTree(join(layout.trash, name));
  }
}

/** The images whose delete a crash cut short. */
export async function beganDeletes(layout: Layout): Promise<string[]> {
  return await readdir(layout.deletes);
}

/** The images that were deleted, and nobody has said yet that their delete job will not come again. */
export async function endedDeletes(layout: Layout): Promise<string[]> {
  return await readdir(layout.deleted);
}

/** Drops the memory of a delete that has ended. */
export async function forget(layout: Layout, imageId: string): Promise<void> {
  await rm(join(layout.deleted, imageId), { force: true });
}

async function mark(path: string): Promise<void> {
  try {
    await writeFile(path, '', { mode: STATE_FILE });
    await syncToDisk(dirname(path));
  } catch (error) {
    // A full disk must not keep an image from being deleted. A crash in the middle then leaves some of its
    // formats, each of them whole.
    if (!['ENOSPC', 'EDQUOT'].includes(errnoOf(error) ?? '')) throw error;
  }
}
