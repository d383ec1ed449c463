import { lstat, readlink } from 'node:fs/promises';
import { dirname } from 'node:path';
import { ImageError } from '../errors.ts';
import { unlessMissing } from '../system-error.ts';
import type { UploadRequest } from '../types.ts';
import { type DirectoryManifest, manifestPath, readManifest } from './manifest.ts';
import { isLinkedPartial } from './partial-file.ts';

/**
 * Refuses to replace a file of another owner or of another image, for `a-b` of image `c` and
 * `a` of image `b-c` share a file name. A shared upload replaces nothing at all.
 *
 * @returns the manifest of the existing image
 * @throws ImageError `provider-refused`
 */
export async function refuseForeign(
  target: string,
  { uploadId, imageId, imageName, shared = false }: UploadRequest,
): Promise<DirectoryManifest | undefined> {
  const ino = (await unlessMissing(lstat(target)))?.ino;
  const isUnfinished = shared && ino !== undefined && (await isLinkedPartial(dirname(target), uploadId, ino));
  const there = await readManifest(target); // last: a process of a shared upload may have written it by now
  if (there === undefined) {
    if (!isUnfinished) await refuseExisting([target, manifestPath(target)]);
    return undefined;
  }
  const isSame = there['image-id'] === imageId && there['image-name'] === imageName;
  if (isSame && (!shared || there['upload-id'] === uploadId)) return there;
  throw new ImageError(
    'provider-refused',
    `${target} is image ${there['image-id']} of ${there['image-name']} already; delete that one or use another image-id`,
  );
}

/**
 * Refuses to replace a file, or a link that is not ours, by a link.
 *
 * @throws ImageError `provider-refused`
 */
export async function refuseForeignLink(path: string): Promise<void> {
  if (!(await isOurLink(path))) await refuseExisting([path]);
}

/** Whether a path is free, or has a link of ours: one to a file beside it. */
export async function isOurLink(path: string): Promise<boolean> {
  const state = await unlessMissing(lstat(path));
  if (state === undefined) return true;
  return state.isSymbolicLink() && !((await unlessMissing(readlink(path))) ?? '').includes('/');
}

async function refuseExisting(paths: readonly string[]): Promise<void> {
  for (const path of paths) {
    if ((await unlessMissing(lstat(path))) === undefined) continue;
    throw new ImageError(
      'provider-refused',
      `${path} was not made by this software, and is not replaced; move it away or rename the image under providers[].images`,
    );
  }
}
