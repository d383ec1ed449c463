import { randomBytes } from 'node:crypto';
import { open, readdir, rename, rm } from 'node:fs/promises';
import { hostname } from 'node:os';
import { dirname, join } from 'node:path';

/** `.upload-<host>.<pid>.<random>.part`: hidden from whoever serves the directory, and it names its owner. */
const PARTIAL_NAME = /^\.upload-(?<host>.+)\.(?<pid>\d+)\.[0-9a-f]{8}\.part$/;

/** `.upload-<encoded upload-id>.<random>.part`: of a shared upload, whose processes may be anywhere. */
const SHARED_NAME = /^\.upload-(?<upload>[^.]+)\.[0-9a-f]{8}\.part$/;

/** Mode of what the directory serves: everybody reads it, and only its owner writes it. */
export const PUBLISHED = 0o644;

/** What names a shared upload in the name of a temporary file. */
export function uploadOwner(uploadId: string): string {
  return encodeURIComponent(uploadId).replaceAll('.', '%2E');
}

/** The shared upload that a temporary file is of; undefined for any other file. */
export function sharedUploadOf(fileName: string): string | undefined {
  const encoded = SHARED_NAME.exec(fileName)?.groups?.upload;
  try {
    return encoded === undefined ? undefined : decodeURIComponent(encoded);
  } catch {
    return undefined; // nothing that uploadOwner wrote
  }
}

/**
 * A fresh temporary path in `directory`, so that a rename puts the file in its place.
 *
 * @param owner default: this process
 */
export function partialPath(directory: string, owner: string = `${hostname()}.${process.pid}`): string {
  return join(directory, `.upload-${owner}.${randomBytes(4).toString('hex')}.part`);
}

/** Removes what processes of this host left here when they were killed. */
export async function removeStalePartials(directory: string): Promise<void> {
  for (const name of await readdir(directory)) {
    const owner = PARTIAL_NAME.exec(name)?.groups;
    if (owner?.host !== hostname() || isAlive(Number(owner.pid))) continue;
    await rm(join(directory, name), { force: true });
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}

/** Puts a small file in place so that a reader sees the old one or the new one, whole, even after a power cut. */
export async function replaceFile(path: string, content: string, owner?: string): Promise<void> {
  const partial = partialPath(dirname(path), owner);
  const file = await open(partial, 'wx', PUBLISHED);
  try {
    await file.chmod(PUBLISHED); // whatever the umask is
    await file.writeFile(content);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(partial, path);
}

/** Makes renames and removals in `directory` survive a power cut. */
export async function syncDirectory(directory: string): Promise<void> {
  const handle = await open(directory, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
