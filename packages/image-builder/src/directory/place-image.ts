import { link, lstat, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { ImageError } from '../errors.ts';
import { checksumsOf } from '../hashed-reader.ts';
import { unlessMissing } from '../system-error.ts';
import type { Checksums, UploadRequest } from '../types.ts';
import { copyImage } from './copy-image.ts';
import { refuseForeign } from './foreign.ts';
import { type DirectoryManifest, manifestPath, manifestText, readManifest } from './manifest.ts';
import { partialPath, replaceFile, writePartial } from './partial-file.ts';
import type { CopyOptions } from './sparse-copy.ts';

/** Settings of {@link placeImage} and {@link placeSharedImage}. */
export interface PlaceOptions extends CopyOptions {
  /** Build time in the manifest. */
  readonly built: Date;
  readonly uploaded: Date;
  /** Removes an image with the same id and other bytes. */
  readonly remove: (manifest: DirectoryManifest) => Promise<void>;
}

/** Gives an image its manifest, and then its name. A crash in between leaves nothing under that name. */
export async function placeImage(
  request: UploadRequest,
  target: string,
  options: PlaceOptions,
): Promise<void> {
  const { uploadId, file } = request;
  const partial = partialPath(dirname(target), uploadId);
  let hidden = partial;
  try {
    const copied = await copyImage(file, partial, options);
    options.signal?.throwIfAborted();
    const text = textOf(request, copied, (await stat(partial)).size, options);
    hidden = await writePartial(dirname(target), uploadId, text);
    const there = await refuseForeign(target, request); // again: the copy took time
    // An image never has the manifest of other bytes, not even for a moment.
    if (there !== undefined && there.sha256 !== copied.sha256) await options.remove(there);
    await rename(hidden, manifestPath(target));
    await rename(partial, target);
    if ((await readManifest(target))?.sha256 === copied.sha256) return;
    await rm(target, { force: true });
    throw superseded(uploadId);
  } catch (error) {
    // Another process with the same job removed the temporary files, and the manifest is that process's.
    if (await isSuperseded(error, [partial, hidden])) throw superseded(uploadId);
    await removeUnlessWhole(target, uploadId).catch(() => {}); // a discard removes it
    throw error;
  } finally {
    // Errors here must not replace the first one; the next try or a discard removes the files.
    for (const path of [partial, hidden]) await rm(path, { force: true }).catch(() => {});
  }
}

/**
 * Places an image that other processes may place, too. The first file stays, so that every manifest fits it. Until it has a
 * manifest the file has its hidden name as well, by which other processes, a discard and a list of leftovers find it.
 */
export async function placeSharedImage(
  request: UploadRequest,
  target: string,
  options: PlaceOptions,
): Promise<void> {
  const { uploadId, file } = request;
  const partial = partialPath(dirname(target), uploadId);
  let hidden = partial;
  try {
    const copied = await copyImage(file, partial, options);
    options.signal?.throwIfAborted();
    const { size } = await stat(partial);
    hidden = await writePartial(dirname(target), uploadId, textOf(request, copied, size, options));
    if (await linkUnlessThere(partial, target)) {
      await rename(hidden, manifestPath(target));
      return;
    }
    await refuseForeign(target, request);
    const text = textOf(request, await checksumsOf(target, options), (await stat(target)).size, options);
    await replaceFile(manifestPath(target), text, uploadId);
  } finally {
    await removeUnlessNeeded(partial, target).catch(() => {}); // `leftovers` lists it
    if (hidden !== partial) await rm(hidden, { force: true }).catch(() => {});
  }
}

function textOf(
  { uploadId, imageId, imageName, file, metadata = {} }: UploadRequest,
  { md5, sha256 }: Checksums,
  size: number,
  { built, uploaded }: PlaceOptions,
): string {
  return manifestText({
    'image-id': imageId,
    'image-name': imageName,
    'upload-id': uploadId,
    format: file.format,
    size,
    md5,
    sha256,
    built: built.toISOString(),
    uploaded: uploaded.toISOString(),
    metadata,
  });
}

/** Whether a temporary file is gone, and its directory is not. */
async function isSuperseded(error: unknown, paths: readonly string[]): Promise<boolean> {
  const { code, path = '' } = error as NodeJS.ErrnoException;
  if (code !== 'ENOENT' || !paths.includes(path)) return false;
  return (await unlessMissing(stat(dirname(path)))) !== undefined;
}

function superseded(uploadId: string): ImageError {
  return new ImageError(
    'provider-refused',
    `another process began upload ${uploadId} again; its image is the one that stays`,
  );
}

/** Removes the manifest of an upload whose image is missing. */
async function removeUnlessWhole(target: string, uploadId: string): Promise<void> {
  if ((await readManifest(target))?.['upload-id'] !== uploadId) return;
  if ((await unlessMissing(lstat(target))) === undefined) await rm(manifestPath(target), { force: true });
}

/** Removes a hidden name, unless its file is an image without a manifest. */
async function removeUnlessNeeded(partial: string, target: string): Promise<void> {
  const [hidden, image] = [await unlessMissing(lstat(partial)), await unlessMissing(lstat(target))];
  const isNeeded = hidden !== undefined && hidden.ino === image?.ino;
  if (!isNeeded || (await readManifest(target)) !== undefined) await rm(partial, { force: true });
}

/** Links a file to another name, unless that name exists; returns whether it did. */
async function linkUnlessThere(path: string, name: string): Promise<boolean> {
  try {
    await link(path, name);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}
