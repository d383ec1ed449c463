import { constants, lstatSync, realpathSync, type Stats } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { ImageError } from './errors.ts';
import { errnoOf } from './system-error.ts';

/**
 * Finds the part of a path that a user other than root and this one can replace: the path itself, a directory above it,
 * or a part of the targets of its symbolic links. This user's own group counts as this user. A directory with the
 * sticky bit, such as /tmp, is safe if the entry in it is.
 *
 * @returns `/srv/site belongs to user 1001`; undefined if only root and this user can replace it
 * @throws Error of the file system: `ENOENT`
 */
export function foreignPart(path: string): string | undefined {
  const parts = [...new Set([path, targetOf(path)].flatMap(ancestry))];
  for (const part of parts) {
    const state = lstatSync(part);
    if (!isOwn(state)) return `${part} belongs to user ${state.uid}`;
    const writer = otherWriter(state);
    if (writer !== undefined) return `${part} is writable for ${writer}`;
  }
  return undefined;
}

/** Returns the path without symbolic links, or with them if they lead nowhere. */
function targetOf(path: string): string {
  try {
    return realpathSync(path);
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return path;
    throw error;
  }
}

/** The path and the directories above it, from the top. */
function ancestry(path: string): readonly string[] {
  const parent = dirname(path);
  return parent === path ? [path] : [...ancestry(parent), path];
}

function isOwn({ uid }: Stats): boolean {
  return uid === 0 || uid === process.geteuid?.();
}

function otherWriter(state: Stats): string | undefined {
  if (state.isSymbolicLink() || (state.isDirectory() && (state.mode & 0o1000) !== 0)) return undefined;
  if ((state.mode & 0o002) !== 0) return 'every user';
  const isOwnGroup = state.gid === 0 || state.gid === process.getegid?.();
  return (state.mode & 0o020) !== 0 && !isOwnGroup ? `group ${state.gid}` : undefined;
}

/** Flags of open(2) with which no other user can make this process follow a link to another file, or wait at a FIFO. */
export const UNTRICKED: number = constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** Meaning of an error of open(2) with these flags. */
const REFUSED: Readonly<Record<string, string>> = {
  ELOOP: 'is a symbolic link',
  ENXIO: 'is not a regular file', // a FIFO without a reader, or a socket
};

/** Explains why another user may have created a file; undefined for a regular file of this user or of root. */
export function foreignFile(state: Stats): string | undefined {
  if (!state.isFile()) return 'is not a regular file';
  if (state.nlink > 1) return 'has a second name, which may belong to another file';
  return isOwn(state) ? undefined : `belongs to user ${state.uid}`;
}

/**
 * Opens or creates a file of this user or of root in a directory that others may write to. It is not truncated.
 *
 * @param flags of open(2), such as `O_RDWR | O_CREAT`
 * @param mode of a new file
 * @throws ImageError `directory-not-usable` for a symbolic link, a FIFO, a device, or a file of another user; Error of
 * the file system
 */
export async function openOwnFile(path: string, flags: number, mode?: number): Promise<FileHandle> {
  const file = await open(path, flags | UNTRICKED, mode).catch((error: unknown) => {
    const reason = REFUSED[errnoOf(error) ?? ''];
    throw reason === undefined ? error : notOwn(path, reason, error);
  });
  const reason = foreignFile(await file.stat());
  if (reason === undefined) return file;
  await file.close();
  throw notOwn(path, reason);
}

function notOwn(path: string, reason: string, cause?: unknown): ImageError {
  return new ImageError('directory-not-usable', `"${path}" ${reason}; remove it`, { cause });
}
