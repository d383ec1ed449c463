import { createHash, randomBytes } from 'node:crypto';
import { lstat, open, readdir, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { unlessMissing } from '../system-error.ts';
import { manifestPath } from './manifest.ts';

/**
 * `.upload-<encoded upload-id>.<random>.part`: hidden from consumers of the directory. It names its upload, and neither a
 * host nor a process: resuming or discarding the upload removes it.
 */
const PARTIAL_NAME = /^\.upload-(?<upload>[^.]+)\.[0-9a-f]{8}\.part$/;

/** The longest encoded upload-id that leaves room for the rest of a file name. */
const LONGEST_OWNER = 200;

/** Mode of published files: readable by all, writable by their owner. */
export const PUBLISHED = 0o644;

function ownerOf(uploadId: string): string {
  const encoded = encodeURIComponent(uploadId).replaceAll('.', '%2E');
  if (encoded.length <= LONGEST_OWNER) return encoded;
  return `sha256-${createHash('sha256').update(uploadId).digest('hex')}`;
}

/** The upload of a temporary file; undefined for any other file. */
export function uploadOf(fileName: string): string | undefined {
  const encoded = PARTIAL_NAME.exec(fileName)?.groups?.upload;
  try {
    return encoded === undefined ? undefined : decodeURIComponent(encoded);
  } catch {
    return undefined; // not a name that partialPath made
  }
}

/** A new temporary path in `directory`. A rename puts the file in its place. */
export function partialPath(directory: string, uploadId: string): string {
  return join(directory, `.upload-${ownerOf(uploadId)}.${randomBytes(4).toString('hex')}.part`);
}

/** Removes the temporary files of an upload. */
export async function removePartials(directory: string, uploadId: string): Promise<void> {
  const names = await readdir(directory);
  for (const name of names.filter(isPartialOf(uploadId)))
    await removePartial(directory, join(directory, name));
}

/** Removes a temporary file, and the name that it has as an image, if that image has no manifest. */
export async function removePartial(directory: string, path: string): Promise<void> {
  const { nlink, ino } = (await unlessMissing(lstat(path))) ?? { nlink: 0, ino: 0 };
  const names = nlink > 1 ? new Set(await readdir(directory)) : new Set<string>();
  for (const name of names) {
    const image = join(directory, name);
    if (image === path || names.has(manifestPath(name))) continue;
    if ((await unlessMissing(lstat(image)))?.ino === ino) await rm(image, { force: true });
  }
  await rm(path, { force: true });
}

/** Whether a file is also a temporary file of an upload, by a hard link. */
export async function isLinkedPartial(directory: string, uploadId: string, ino: number): Promise<boolean> {
  for (const name of (await readdir(directory)).filter(isPartialOf(uploadId))) {
    if ((await unlessMissing(lstat(join(directory, name))))?.ino === ino) return true;
  }
  return false;
}

function isPartialOf(uploadId: string): (name: string) => boolean {
  const prefix = `.upload-${ownerOf(uploadId)}.`;
  return (name) => name.startsWith(prefix) && PARTIAL_NAME.test(name);
}

/** Writes and flushes a small file under a temporary name, for a rename into place. */
export async function writePartial(directory: string, uploadId: string, content: string): Promise<string> {
  const partial = partialPath(directory, uploadId);
  const file = await open(partial, 'wx', PUBLISHED);
  try {
    await file.chmod(PUBLISHED); // independent of the umask
    await file.writeFile(content);
    await file.sync();
  } catch (error) {
    await rm(partial, { force: true }).catch(() => {}); // the next try or a discard removes it
    throw error;
  } finally {
    await file.close();
  }
  return partial;
}

/** Replaces a small file. Readers see the old or the new content, and a crash leaves one of both. */
export async function replaceFile(path: string, content: string, uploadId: string): Promise<void> {
  await rename(await writePartial(dirname(path), uploadId, content), path);
}

/** Flushes renames and removals in `directory` to the disk. */
export async function syncDirectory(directory: string): Promise<void> {
  const handle = await open(directory, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
