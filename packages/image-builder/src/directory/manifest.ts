import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type CloudImage, cloudImage } from '../cloud/cloud-image.ts';
import { FORMAT_NAMES, formatOfExtension } from '../formats.ts';
import { DamagedRecordError, RecordType } from '../record-directory.ts';
import { NUMBER, objectOf, type SettingsOf, TEXT } from '../settings-schema.ts';
import { unlessMissing } from '../system-error.ts';

const SCHEMA = objectOf(
  {
    'image-id': TEXT,
    'image-name': { ...TEXT, description: 'Name under `providers[].images`.' },
    'upload-id': TEXT,
    format: { enum: FORMAT_NAMES },
    size: { ...NUMBER, description: 'Size in bytes, holes included.' },
    md5: TEXT,
    sha256: TEXT,
    built: { ...TEXT, description: 'Time at which the builder finished the image, in ISO 8601.' },
    uploaded: { ...TEXT, description: 'ISO 8601.' },
  },
  {
    metadata: { type: 'object', additionalProperties: TEXT },
    attestations: {
      type: 'array',
      items: TEXT,
      description: 'Names of documents that prove the origin of the image, each `<image file>.<name>`.',
    },
  },
);

/**
 * The file `<image file>.json` next to each image. A consumer verifies the image with it, and it marks the image as
 * ours.
 */
export type DirectoryManifest = SettingsOf<typeof SCHEMA>;

/** Files of manifests. */
export const MANIFEST: RecordType<typeof SCHEMA> = new RecordType(SCHEMA);

const EXTENSION = '.json';

/** Path of the manifest of an image file. */
export function manifestPath(imagePath: string): string {
  return imagePath + EXTENSION;
}

/** Reads a manifest; undefined if it does not exist, or is not ours. */
export async function readManifest(imagePath: string): Promise<DirectoryManifest | undefined> {
  const path = manifestPath(imagePath);
  // Reading a FIFO would never end, and a symbolic link is not ours.
  if ((await unlessMissing(lstat(path)))?.isFile() !== true) return undefined;
  try {
    return await MANIFEST.read(path);
  } catch (error) {
    if (error instanceof DamagedRecordError) return undefined;
    throw error;
  }
}

/** A manifest and its image. */
export interface DirectoryEntry {
  readonly externalId: string;
  readonly manifest: DirectoryManifest;
  /**
   * True if the image is a regular file of the size in the manifest. If not, an upload or a deletion was interrupted.
   */
  readonly isWhole: boolean;
}

/** All manifests of ours in a directory. */
export async function readEntries(directory: string): Promise<readonly DirectoryEntry[]> {
  const found: DirectoryEntry[] = [];
  for (const name of await readdir(directory)) {
    if (!name.endsWith(EXTENSION)) continue;
    const externalId = name.slice(0, -EXTENSION.length);
    if (formatOfExtension(externalId.slice(externalId.lastIndexOf('.') + 1)) === undefined) continue;
    const manifest = await readManifest(join(directory, externalId));
    if (manifest === undefined) continue;
    const state = await unlessMissing(lstat(join(directory, externalId)));
    const isWhole = state?.isFile() === true && state.size > 0 && state.size === manifest.size;
    found.push({ externalId, manifest, isWhole });
  }
  return found;
}

/** Complete images of ours. */
export async function readWholeImages(directory: string): Promise<readonly DirectoryEntry[]> {
  return (await readEntries(directory)).filter(({ isWhole }) => isWhole);
}

/** Describes an image as clouds do. Its name is that of its file; its times are those of its manifest. */
export function describeManifest(provider: string, entry: DirectoryEntry): CloudImage<DirectoryEntry> {
  const { externalId, manifest, isWhole } = entry;
  const { metadata = {}, format, size, md5, sha256 } = manifest;
  return cloudImage({
    native: entry,
    externalId,
    status: isWhole ? 'whole' : 'partial',
    isComplete: isWhole,
    tagged: {
      provider,
      imageId: manifest['image-id'],
      uploadId: manifest['upload-id'],
      imageName: manifest['image-name'],
      builtAt: new Date(manifest.built),
      format,
      size,
      checksums: { md5, sha256 },
    },
    properties: metadata,
    createdAt: new Date(manifest.uploaded),
  });
}

/** Describes an image without a manifest of ours: it is neither listed nor deleted. */
export function foreignImage(externalId: string): CloudImage<undefined> {
  const createdAt = new Date(0);
  return cloudImage({
    native: undefined,
    externalId,
    status: 'foreign',
    isComplete: false,
    properties: {},
    createdAt,
  });
}
