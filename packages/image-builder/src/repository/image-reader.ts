import { ImageError } from '../errors.ts';
import { FORMAT_NAMES } from '../formats.ts';
import { type Manifest, type ManifestFile, manifestTime, readManifest } from '../manifest.ts';
import { errnoOf } from '../system-error.ts';
import type { Image, ImageFile, Logger } from '../types.ts';
import { imageFileName, type Layout } from './layout.ts';
import type { FileState, SettledFiles } from './settled-files.ts';

/** Reads an image from its files and its manifest; undefined if no file is complete. */
export async function readImage(
  imageId: string,
  layout: Layout,
  settled: SettledFiles,
  logger: Logger | undefined,
): Promise<Image | undefined> {
  const present = FORMAT_NAMES.flatMap((format) => {
    const state = settled.get(imageFileName(imageId, format));
    return state === undefined ? [] : [{ format, state }];
  });
  if (present.length === 0) return undefined;
  const manifest = await readManifestOrWarn(imageId, layout, logger);
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
  return {
    id: imageId,
    ...(manifest?.['image-name'] !== undefined && { name: manifest['image-name'] }),
    builtAt: new Date(built ?? newest),
    files,
    ...(manifest?.snapshots !== undefined && { snapshots: manifest.snapshots }),
  };
}

/** Whether two images have the same public properties. */
export function isSameImage(one: Image, other: Image): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

/** Manifest of an image; a damaged one is logged and ignored. Only its owner can read it. */
export async function readManifestOrWarn(
  imageId: string,
  layout: Layout,
  logger: Logger | undefined,
): Promise<Manifest | undefined> {
  try {
    return await readManifest(layout.manifest(imageId), imageId);
  } catch (error) {
    if (errnoOf(error) === 'EACCES') return undefined;
    if (!(error instanceof ImageError)) throw error;
    logger?.warn(error.message);
    return undefined;
  }
}

function describes(file: ManifestFile, state: FileState): boolean {
  return file.size === state.size && file.mtime === manifestTime(state.mtimeMs);
}
