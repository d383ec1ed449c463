import { lstat, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { removeTree } from '../cleanup/privileged.ts';
import { syncToDisk } from '../durable.ts';
import { FORMAT_NAMES, formatRow } from '../formats.ts';
import { STATE_FILE } from '../modes.ts';
import { errnoOf, unlessMissing } from '../system-error.ts';
import type { Layout } from './layout.ts';

/** Milliseconds for which the end of a delete is remembered without an acknowledgement. */
export const DELETE_MEMORY = 600_000;

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

export function belongsTo(imageId: string, name: string): boolean {
  return name.startsWith(`${imageId}.`) && SUFFIXES.has(name.slice(imageId.length + 1));
}

/**
 * Moves all files of an image from `images-dir` into the trash. After a crash its name remains in `layout.deletes`, so
 * that the delete is completed.
 */
export async function withdraw(layout: Layout, imageId: string): Promise<void> {
  const began = join(layout.deletes, imageId);
  await mark(began);
  try {
    for (const suffix of SUFFIXES) {
      const name = `${imageId}.${suffix}`;
      // Listing the directory would take longer the more images there are.
      if ((await unlessMissing(lstat(join(layout.root, name)))) === undefined) continue;
      await removeTree(join(layout.trash, name));
      await rename(join(layout.root, name), join(layout.trash, name));
    }
    await rm(layout.manifest(imageId), { force: true });
  } catch (error) {
    await rm(began, { force: true });
    throw error;
  }
  await unlessMissing(rename(began, join(layout.deleted, imageId)));
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

/** Removes the files that {@link withdraw} moved, which takes time for large files. */
export async function emptyTrash(layout: Layout, imageId?: string): Promise<void> {
  for (const name of await readdir(layout.trash)) {
    if (imageId === undefined || belongsTo(imageId, name)) await removeTree(join(layout.trash, name));
  }
}

/**
 * Deletes whose end the job server has not acknowledged. If this process dies first, the job server assigns the job
 * again, for an image that no longer exists.
 */
export class PendingDeletes {
  readonly #layout: Layout;
  readonly #onForgotten: (imageId: string) => void;
  readonly #timers = new Map<string, NodeJS.Timeout>();
  readonly ids: Set<string> = new Set();

  constructor(layout: Layout, onForgotten: (imageId: string) => void) {
    this.#layout = layout;
    this.#onForgotten = onForgotten;
  }

  /** Loads the deletes of the previous process. */
  async load(): Promise<void> {
    for (const imageId of await readdir(this.#layout.deleted)) this.add(imageId);
  }

  add(imageId: string): void {
    clearTimeout(this.#timers.get(imageId));
    // A file that cannot be removed is harmless, because this process decides from memory.
    const timer = setTimeout(() => void this.forget(imageId).catch(() => undefined), DELETE_MEMORY);
    this.#timers.set(imageId, timer.unref());
    this.ids.add(imageId);
  }

  async forget(imageId: string): Promise<void> {
    clearTimeout(this.#timers.get(imageId));
    this.#timers.delete(imageId);
    if (!this.ids.delete(imageId)) return;
    this.#onForgotten(imageId);
    await rm(join(this.#layout.deleted, imageId), { force: true });
  }

  close(): void {
    for (const timer of this.#timers.values()) clearTimeout(timer);
    this.#timers.clear();
    this.ids.clear();
  }
}
