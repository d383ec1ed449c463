import { chmodSync, lstatSync } from 'node:fs';
import { chmod, mkdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { errnoOf } from './system-error.ts';

/** Mode of a directory with state, which only the user that runs this program may read. */
export const STATE_DIRECTORY = 0o700;

/** Mode of a file with state. */
export const STATE_FILE = 0o600;

/** Mode of an image, which other users may read. */
export const IMAGE_FILE = 0o644;

/** Mode of the directory that disk-image-create creates next to an image. */
export const IMAGE_DIRECTORY = 0o755;

/** Mode of a build log, because the output of a build may reveal more than its configuration. */
export const BUILD_LOG = 0o640;

/** Mode of a directory of build logs that is not below `.nodepool-builder`. */
export const BUILD_LOG_DIRECTORY = 0o750;

/**
 * Creates a directory with state, or tightens the mode of an existing one.
 *
 * @throws Error `EPERM` if it belongs to another user and is open to others
 */
export async function makeStateDirectory(path: string): Promise<void> {
  await makeDirectory(path, STATE_DIRECTORY);
  await setMode(path, STATE_DIRECTORY);
}

/**
 * Creates a directory, and the directories above it. Node's recursive mkdir never ends below /proc, and fails with
 * ENOENT instead of EROFS on a read-only file system.
 *
 * @throws Error of the file system: `EEXIST` if the path is not a directory
 */
export async function makeDirectory(path: string, mode: number): Promise<void> {
  const make = async (): Promise<void> => {
    await mkdir(path, { mode }).catch(async (error: unknown) => {
      if (errnoOf(error) !== 'EEXIST') throw error;
      const existing = await stat(path).catch(() => undefined);
      if (existing?.isDirectory() !== true) throw error;
    });
  };
  await make().catch(async (error: unknown) => {
    if (errnoOf(error) !== 'ENOENT') throw error;
    await makeDirectory(dirname(path), mode);
    await make();
  });
}

/**
 * Sets the mode of a file. A file of another user keeps its mode if that does not grant more.
 *
 * @throws Error `EPERM` for a file of another user whose mode grants more
 */
export async function setMode(path: string, mode: number): Promise<void> {
  const { mode: present } = await stat(path);
  if ((present & 0o7777) === mode) return;
  await chmod(path, mode).catch((error: unknown) => {
    if (errnoOf(error) !== 'EPERM' || isWider(present, mode)) throw error;
  });
}

/**
 * Removes the permissions of a regular file that exceed a mode.
 *
 * @returns whether the mode changed
 * @throws Error `EPERM` for a file of another user
 */
export async function limitMode(path: string, mode: number): Promise<boolean> {
  // Synchronous, because this saves seconds at a start with 100,000 images.
  const state = lstatSync(path, { throwIfNoEntry: false });
  if (!state?.isFile() || !isWider(state.mode, mode)) return false;
  chmodSync(path, state.mode & mode);
  return true;
}

function isWider(present: number, mode: number): boolean {
  return (present & 0o7777 & ~mode) !== 0;
}
