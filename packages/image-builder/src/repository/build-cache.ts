import { isUtf8 } from 'node:buffer';
import { createHash } from 'node:crypto';
import { rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { removeTree } from '../cleanup/privileged.ts';
import { entryPaths } from '../directory-entries.ts';
import { STAT_BLOCK, stateOf, unlessUnreadable } from '../disk-space.ts';
import { makeStateDirectory, STATE_FILE } from '../modes.ts';
import { unlessMissing } from '../system-error.ts';
import { safeName } from './state-directory.ts';

/** Milliseconds after which an unused cache is removed: a month. */
export const CACHE_RETENTION: number = 30 * 24 * 3_600_000;

/** Milliseconds before the end of a failed build in which a changed file may be incomplete. */
const UNFINISHED = 60_000;

/** Maximum length of the part of an image name in the name of its cache. */
const MAX_NAME_LENGTH = 200;

/** File in a cache that a build is using. It outlives a crash. */
const IN_USE = '.in-use';

/** Suffix of an unfinished git clone of diskimage-builder, at which the next build would fail. */
const UNFINISHED_CLONE = /\.tmp$/;

/** A directory for downloads that one build uses. */
export interface BuildCache {
  readonly directory: string;
  /** Ends the use, after a build that was published or has failed. */
  readonly release: (isPublished: boolean) => Promise<void>;
}

/** Downloads of builds, in a directory for each image name. No two builds use the same one concurrently. */
export class BuildCaches {
  readonly #parent: string;
  readonly #used = new Set<string>();

  constructor(parent: string) {
    this.#parent = parent;
  }

  /**
   * Takes the cache of an image name for one build.
   *
   * @param limit maximum size at the end of the build in bytes; the least recently used files are removed
   * @returns undefined while another build uses it
   */
  async take(imageName: string, limit: number): Promise<BuildCache | undefined> {
    const directory = join(this.#parent, plainName(imageName));
    if (this.#used.has(directory)) return undefined;
    this.#used.add(directory);
    const mark = join(directory, IN_USE);
    try {
      await makeStateDirectory(directory);
      const crashed = await unlessMissing(stat(mark));
      if (crashed !== undefined) await removeUnfinished(directory, crashed.mtimeMs);
      await writeFile(mark, '', { mode: STATE_FILE });
    } catch (error) {
      this.#used.delete(directory);
      throw error;
    }
    const release = async (isPublished: boolean): Promise<void> => {
      try {
        if (!isPublished) await removeUnfinished(directory, Date.now() - UNFINISHED);
        await rm(mark, { force: true });
        await prune(directory, limit);
        const now = new Date();
        await utimes(directory, now, now);
      } finally {
        this.#used.delete(directory);
      }
    };
    return { directory, release };
  }
}

/**
 * Removes files that a build may have left incomplete since a given time. diskimage-builder writes debootstrap's
 * archive under its final name, and would use a truncated one. Packages and downloads are renamed when complete.
 */
async function removeUnfinished(directory: string, since: number): Promise<void> {
  for (const path of await entryPaths(Buffer.from(directory))) {
    const state = await stateOf(path);
    if (state?.isFile() && state.mtimeMs >= since) await remove(path);
    if (!state?.isDirectory()) continue;
    for (const clone of await entryPaths(path)) if (isNamed(clone, UNFINISHED_CLONE)) await remove(clone);
  }
}

/** A file, or a directory that is only usable as a whole. */
interface Entry {
  readonly path: Buffer;
  readonly bytes: number;
  /** Time of the last use, in milliseconds. */
  readonly used: number;
}

async function prune(directory: string, limit: number): Promise<void> {
  const entries = await entriesOf(Buffer.from(directory));
  let sum = entries.reduce((total, { bytes }) => total + bytes, 0);
  for (const { path, bytes } of entries.toSorted((one, other) => one.used - other.used)) {
    if (sum <= limit) return;
    await remove(path);
    sum -= bytes;
  }
}

async function entriesOf(path: Buffer): Promise<Entry[]> {
  const state = await stateOf(path);
  if (state === undefined) return [];
  const used = Math.max(state.atimeMs, state.ctimeMs);
  if (!state.isDirectory()) return [{ path, bytes: state.blocks * STAT_BLOCK, used }];
  const children = (await entryPaths(path).catch(unlessUnreadable)) ?? [];
  const entries = (await Promise.all(children.map(entriesOf))).flat();
  const has = (name: RegExp): boolean => children.some((child) => isNamed(child, name));
  // A git repository without some of its files is damaged.
  const isRepository = has(/\/\.git$/) || (has(/\/HEAD$/) && has(/\/objects$/));
  if (!isRepository) return entries;
  const bytes = entries.reduce((total, entry) => total + entry.bytes, 0);
  return [{ path, bytes, used: entries.reduce((last, entry) => Math.max(last, entry.used), 0) }];
}

/** Returns a short name without shell characters, because the scripts of diskimage-builder do not quote paths. */
function plainName(imageName: string): string {
  const name = safeName(imageName).replace(/[!'()*~]/g, (one) => `%${one.charCodeAt(0).toString(16)}`);
  if (name.length <= MAX_NAME_LENGTH) return name;
  return `${name.slice(0, MAX_NAME_LENGTH)}-${createHash('sha256').update(imageName).digest('hex').slice(0, 16)}`;
}

/** Removes a path. Files in directories that a build created with sudo belong to root. */
async function remove(path: Buffer): Promise<void> {
  await rm(path, { recursive: true, force: true }).catch(async () => {
    if (isUtf8(path)) await removeTree(path.toString());
  });
}

function isNamed(path: Buffer, name: RegExp): boolean {
  return name.test(path.toString('latin1'));
}
