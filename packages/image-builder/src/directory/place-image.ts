import { link, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { ImageError } from '../errors.ts';
import { checksumsOf } from '../hashed-reader.ts';
import { errnoOf, unlessMissing } from '../system-error.ts';
import type { Checksums, UploadRequest } from '../types.ts';
import { type CopyOptions, copyImage } from './copy-image.ts';
import { type DirectoryManifest, MANIFEST, manifestPath, readManifest } from './manifest.ts';
import { isLinkedPartial, partialPath, stateOf, writePartial } from './partial-file.ts';
import { placeSidecars, removeManifest, withNames } from './sidecars.ts';

/** Settings of {@link placeImage}. */
export interface PlaceOptions extends CopyOptions {
  /** Build time in the manifest. */
  readonly built: Date;
  readonly uploaded: Date;
  /** Removes an image with the same id and other bytes. */
  readonly remove: (manifest: DirectoryManifest) => Promise<void>;
}

/** An image that has been copied to a temporary file next to its final path. */
interface Copy {
  readonly request: UploadRequest;
  readonly target: string;
  readonly options: PlaceOptions;
  /** Temporary path of the image. */
  readonly partial: string;
  /** Temporary path of its manifest. */
  readonly hidden: string;
  readonly checksums: Checksums;
}

/** Copies an image to its final path, with its manifest. */
export async function placeImage(
  request: UploadRequest,
  target: string,
  options: PlaceOptions,
): Promise<void> {
  const { uploadId, file, shared = false } = request;
  const [partial, hidden] = [0, 1].map(() => partialPath(dirname(target), uploadId)) as [string, string];
  try {
    const checksums = await copyImage(file, partial, options);
    options.signal?.throwIfAborted();
    const copy = { request, target, options, partial, hidden, checksums };
    await writeManifest(copy, checksums, partial); // before the image has a name, because the disk may be full
    await (shared ? publishShared(copy) : publish(copy));
  } catch (error) {
    if (shared) throw error;
    // Another process with the same job removed the temporary files, and the manifest belongs to that process.
    if (await isSuperseded(error, [partial, hidden])) throw superseded(uploadId);
    await removeUnlessWhole(target, uploadId).catch(() => {}); // a discard removes it
    throw error;
  } finally {
    // Errors here must not replace the first one. The next attempt or a discard removes the files.
    await removeUnlessNeeded(partial, target).catch(() => {});
    await rm(hidden, { force: true }).catch(() => {});
  }
}

/**
 * Writes the manifest of an image, and then gives the image its name. A crash in between leaves nothing under that
 * name.
 */
async function publish(copy: Copy): Promise<void> {
  const { request, target, options, partial, hidden, checksums } = copy;
  const existing = await refuseForeign(target, request); // checked again, because the copy took time
  // An image never has the manifest of other bytes, not even for a moment.
  if (existing !== undefined && existing.sha256 !== checksums.sha256) await options.remove(existing);
  await rename(hidden, manifestPath(target));
  await placeSidecars(target, request.uploadId, request.attestations ?? []);
  await rename(partial, target);
  if ((await readManifest(target))?.sha256 === checksums.sha256) return;
  await rm(target, { force: true });
  throw superseded(request.uploadId);
}

/**
 * Publishes an image that other processes may also publish. The first file stays, so that every manifest matches it.
 * Until it has a manifest it keeps its hidden name, by which other processes, a discard and a list of partial uploads
 * find it.
 */
async function publishShared(copy: Copy): Promise<void> {
  const { request, target, options, partial, hidden, checksums } = copy;
  let attestations = request.attestations ?? [];
  if (!(await linkUnlessThere(partial, target))) {
    await refuseForeign(target, request);
    await rm(hidden);
    const present = await checksumsOf(target, options);
    if (present.sha256 !== checksums.sha256) attestations = []; // the attestations are about other bytes
    await writeManifest({ ...copy, request: { ...request, attestations } }, present, target);
  }
  await rename(hidden, manifestPath(target));
  await placeSidecars(target, request.uploadId, attestations);
}

async function writeManifest(
  { request, target, options, hidden }: Copy,
  { md5, sha256 }: Checksums,
  path: string,
): Promise<void> {
  const { uploadId, imageId, imageName, file, metadata = {}, attestations = [] } = request;
  const existing = await readManifest(target);
  const text = MANIFEST.text({
    'image-id': imageId,
    'image-name': imageName,
    'upload-id': uploadId,
    format: file.format,
    size: (await stat(path)).size,
    md5,
    sha256,
    built: options.built.toISOString(),
    uploaded: options.uploaded.toISOString(),
    metadata,
    ...withNames(existing?.sha256 === sha256 ? existing : undefined, attestations),
  });
  await writePartial(hidden, text);
}

/** Returns whether a temporary file is gone, but its directory is not. */
async function isSuperseded(error: unknown, paths: readonly string[]): Promise<boolean> {
  const { path = '' } = error as NodeJS.ErrnoException;
  if (errnoOf(error) !== 'ENOENT' || !paths.includes(path)) return false;
  return (await unlessMissing(stat(dirname(path)))) !== undefined;
}

function superseded(uploadId: string): ImageError {
  return new ImageError(
    'provider-refused',
    `another process restarted upload ${uploadId}; its image is the one that stays`,
  );
}

/** Removes the manifest of an upload whose image is missing. */
async function removeUnlessWhole(target: string, uploadId: string): Promise<void> {
  const manifest = await readManifest(target);
  if (manifest?.['upload-id'] !== uploadId) return;
  if ((await stateOf(target)) === undefined) await removeManifest(target, manifest);
}

/** Removes a hidden name, unless its file is an image without a manifest. */
async function removeUnlessNeeded(partial: string, target: string): Promise<void> {
  const [hidden, image] = [await stateOf(partial), await stateOf(target)];
  const isNeeded = hidden !== undefined && hidden.ino === image?.ino;
  if (!isNeeded || (await readManifest(target)) !== undefined) await rm(partial, { force: true });
}

/** Links a file to another name, unless that name exists. Returns whether it did. */
async function linkUnlessThere(path: string, name: string): Promise<boolean> {
  try {
    await link(path, name);
    return true;
  } catch (error) {
    if (errnoOf(error) === 'EEXIST') return false;
    throw error;
  }
}

/**
 * Refuses to replace a file of another owner or of another image: image `c` of `a-b` and image `b-c` of `a` have the
 * same file name. A shared upload replaces nothing.
 *
 * @returns the manifest of the existing image
 * @throws ImageError `provider-refused`
 */
export async function refuseForeign(
  target: string,
  request: UploadRequest,
  isAgain = false,
): Promise<DirectoryManifest | undefined> {
  const { uploadId, imageId, imageName, shared = false } = request;
  const ino = (await stateOf(target))?.ino;
  const isUnfinished = shared && ino !== undefined && (await isLinkedPartial(dirname(target), uploadId, ino));
  const existing = await readManifest(target); // read last, because a process of a shared upload may have written it in the meantime
  if (existing === undefined) {
    if (isUnfinished) return undefined;
    return await refuseExisting([target, manifestPath(target)]).catch((error: unknown) => {
      // A process of a shared upload may have published the image since the lookup.
      if (shared && ino === undefined && !isAgain) return refuseForeign(target, request, true);
      throw error;
    });
  }
  const isSame = existing['image-id'] === imageId && existing['image-name'] === imageName;
  if (isSame && (!shared || existing['upload-id'] === uploadId)) return existing;
  throw new ImageError(
    'provider-refused',
    `${target} is already image ${existing['image-id']} of ${existing['image-name']}; delete it or use another image-id`,
  );
}

/** @throws ImageError `provider-refused` if one of the paths exists */
export async function refuseExisting(paths: readonly string[]): Promise<undefined> {
  for (const path of paths) {
    if ((await stateOf(path)) === undefined) continue;
    throw new ImageError(
      'provider-refused',
      `${path} was not made by this software, and is not replaced; move it away or rename the image under providers[].images`,
    );
  }
}
