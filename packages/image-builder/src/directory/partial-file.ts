import { createHash, randomBytes } from 'node:crypto';
import type { Stats } from 'node:fs';
import { chmod, lstat, readdir, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { UploadPart } from '../cloud/cloud-images.ts';
import { unlessMissing } from '../system-error.ts';
import { manifestPath } from './manifest.ts';

/**
 * `.upload-<encoded upload-id>.<random>.part`: hidden from consumers of the directory. It names its upload, and neither
 * a host nor a process. Resuming or discarding the upload removes it.
 */
const PARTIAL_NAME = /^\.upload-(?<upload>[^.]+)\.[0-9a-f]{8}\.part$/;

/** Maximum length of an encoded upload-id that fits into a file name with the other parts. */
const MAX_OWNER_LENGTH = 200;

/** Mode of published files: readable by all users, writable by their owner. */
export const PUBLISHED = 0o644;

/** Returns the state of a file or of a link itself; undefined if it does not exist. */
export function stateOf(path: string): Promise<Stats | undefined> {
  return unlessMissing(lstat(path));
}

function prefixOf(uploadId: string): string {
  const encoded = encodeURIComponent(uploadId).replaceAll('.', '%2E');
  const digest = (): string => createHash('sha256').update(uploadId).digest('hex');
  return `.upload-${encoded.length <= MAX_OWNER_LENGTH ? encoded : `sha256-${digest()}`}.`;
}

/** Returns a new temporary path in `directory`. A rename then replaces the target. */
export function partialPath(directory: string, uploadId: string): string {
  return join(directory, `${prefixOf(uploadId)}${randomBytes(4).toString('hex')}.part`);
}

async function partialsOf(directory: string, uploadId: string): Promise<string[]> {
  const prefix = prefixOf(uploadId);
  const names = await readdir(directory);
  return names
    .filter((name) => name.startsWith(prefix) && PARTIAL_NAME.test(name))
    .map((name) => join(directory, name));
}

/** Removes the temporary files of an upload. */
export async function removePartials(directory: string, uploadId: string): Promise<void> {
  for (const path of await partialsOf(directory, uploadId)) await removePartial(path);
}

/** Removes a temporary file. If it also has the name of an image without a manifest, that name is removed. */
async function removePartial(path: string): Promise<void> {
  const { nlink, ino } = (await stateOf(path)) ?? { nlink: 0, ino: 0 };
  const names = new Set(nlink > 1 ? await readdir(dirname(path)) : []);
  for (const name of names) {
    const image = join(dirname(path), name);
    if (image === path || names.has(manifestPath(name))) continue;
    if ((await stateOf(image))?.ino === ino) await rm(image, { force: true });
  }
  await rm(path, { force: true });
}

/** Returns whether a file is also a temporary file of an upload, through a hard link. */
export async function isLinkedPartial(directory: string, uploadId: string, ino: number): Promise<boolean> {
  const states = await Promise.all((await partialsOf(directory, uploadId)).map(stateOf));
  return states.some((state) => state?.ino === ino);
}

/** Writes and flushes a small temporary file. */
export async function writePartial(path: string, content: string): Promise<void> {
  await writeFile(path, content, { flag: 'wx', mode: PUBLISHED, flush: true });
  await chmod(path, PUBLISHED); // independent of the umask
}

/** Lists the temporary files of uploads. */
export async function listPartials(directory: string): Promise<UploadPart[]> {
  const parts = (await readdir(directory)).map(async (name) => {
    const uploadId = uploadOf(name);
    const path = join(directory, name);
    return uploadId === undefined ? [] : await partOf(path, uploadId, () => removePartial(path));
  });
  return (await Promise.all(parts)).flat();
}

function uploadOf(fileName: string): string | undefined {
  const encoded = PARTIAL_NAME.exec(fileName)?.groups?.upload;
  try {
    return encoded && decodeURIComponent(encoded);
  } catch {
    return undefined; // not a name that partialPath made
  }
}

/** Describes a file that an upload or a deletion has left, or is writing. Returns nothing if the file is gone. */
export async function partOf(
  path: string,
  uploadId: string,
  removeFile: () => Promise<void>,
): Promise<UploadPart[]> {
  const state = await stateOf(path);
  if (state === undefined) return [];
  const remove = async (): Promise<boolean> => {
    if ((await stateOf(path))?.mtimeMs !== state.mtimeMs) return false;
    await removeFile();
    return true;
  };
  return [{ uploadId, subject: `file ${basename(path)}`, changedAt: state.mtime, remove }];
}
