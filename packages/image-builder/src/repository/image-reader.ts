import { lstat, readdir, realpath } from 'node:fs/promises';
import { FORMAT_NAMES } from '../formats.ts';
import { imageIdError } from '../image-id.ts';
import { type ManifestFile, manifestTime, readManifest } from '../manifest.ts';
import { asImageError, unlessMissing } from '../system-error.ts';
import type { Image, ImageFile, Logger } from '../types.ts';
import { imageFileName, Layout, parseImageFileName } from './layout.ts';
import { type FileState, SettledFiles } from './settled-files.ts';

/** Reads an image from its files and its manifest; undefined if no file is complete. */
export async function readImage(
  imageId: string,
  layout: Layout,
  settled: SettledFiles,
  logger?: Logger,
): Promise<Image | undefined> {
  const present = FORMAT_NAMES.flatMap((format) => {
    const state = settled.get(imageFileName(imageId, format));
    return state === undefined ? [] : [{ format, state }];
  });
  if (present.length === 0) return undefined;
  const manifest = await readManifest(layout.manifest(imageId), imageId, logger);
  const files = present.map(({ format, state }): ImageFile => {
    const known = manifest?.files.find((file) => file.format === format && describes(file, state));
    return {
      format,
      path: layout.image(imageId, format),
      size: state.size,
      ...(known && { checksums: { md5: known.md5, sha256: known.sha256 } }),
    };
  });
  const built = manifest?.built ?? manifest?.finished;
  const newest = Math.max(...present.map(({ state }) => state.mtimeMs));
  const buildTime = (Date.parse(manifest?.finished ?? '') - Date.parse(manifest?.started ?? '')) / 1000;
  return {
    id: imageId,
    ...(manifest?.['image-name'] !== undefined && { name: manifest['image-name'] }),
    builtAt: new Date(built ?? newest),
    ...(buildTime >= 0 && { buildTime }),
    files,
    ...(manifest?.snapshots !== undefined && { snapshots: manifest.snapshots }),
  };
}

/** Removes checksums that no longer match the file, because the catalog notices a change only later. */
export async function withoutStaleChecksums(
  file: ImageFile,
  imageId: string,
  layout: Layout,
): Promise<ImageFile> {
  if (file.checksums === undefined) return file;
  const [state, manifest] = await Promise.all([
    unlessMissing(lstat(file.path)),
    readManifest(layout.manifest(imageId), imageId),
  ]);
  const known = manifest?.files.find(({ format }) => format === file.format);
  if (state !== undefined && known !== undefined && describes(known, state)) return file;
  const { checksums: _, ...rest } = file;
  return rest;
}

function describes(file: ManifestFile, state: Pick<FileState, 'size' | 'mtimeMs'>): boolean {
  return file.size === state.size && file.mtime === manifestTime(state.mtimeMs);
}

/**
 * Reads the complete images of a directory once, without locking it, because another process may own it.
 *
 * @throws ImageError `directory-not-usable`
 */
export async function readImages(directory: string): Promise<Image[]> {
  try {
    const layout = new Layout(await realpath(directory));
    const parsed = (await readdir(layout.root)).flatMap((name) => {
      const imageId = parseImageFileName(name)?.imageId;
      return imageId === undefined || imageIdError(imageId) !== undefined ? [] : [{ name, imageId }];
    });
    const files = new SettledFiles(layout.root);
    await files.check(
      parsed.map(({ name }) => name),
      () => 'moved',
    );
    files.close();
    const images: Image[] = [];
    for (const imageId of new Set(parsed.map((file) => file.imageId))) {
      const image = await readImage(imageId, layout, files);
      if (image !== undefined) images.push(image);
    }
    return images;
  } catch (error) {
    throw asImageError(error, `reading "${directory}"`);
  }
}
