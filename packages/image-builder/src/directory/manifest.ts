import { lstat } from 'node:fs/promises';
import { FORMAT_NAMES, type ImageFormat } from '../formats.ts';
import { DamagedRecord, RecordType } from '../record-directory.ts';
import { unlessMissing } from '../system-error.ts';
import type { Checksums } from '../types.ts';

/** What lies beside each image as `<file>.json`: enough for a consumer to verify it, and our mark that it is ours. */
export interface DirectoryManifest extends Checksums {
  readonly 'image-id': string;
  /** The image's name under `providers[].images`. */
  readonly 'image-name': string;
  /** Which upload brought it; absent in what an earlier release wrote. */
  readonly 'upload-id'?: string;
  readonly format: ImageFormat;
  /** Length in bytes, holes included. */
  readonly size: number;
  /** ISO 8601; when the builder finished the image. `latest` follows it. */
  readonly built: string;
  /** ISO 8601. */
  readonly uploaded: string;
  /** `meta` of `providers[].images`. */
  readonly metadata?: Readonly<Record<string, string>>;
}

const TEXT = { type: 'string' } as const;

const MANIFEST = new RecordType({
  type: 'object',
  required: ['image-id', 'image-name', 'format', 'size', 'md5', 'sha256', 'built', 'uploaded'],
  properties: {
    'image-id': TEXT,
    'image-name': TEXT,
    'upload-id': TEXT,
    format: { enum: FORMAT_NAMES },
    size: { type: 'number' },
    md5: TEXT,
    sha256: TEXT,
    built: TEXT,
    uploaded: TEXT,
    metadata: { type: 'object', additionalProperties: TEXT },
  },
});

/** Content of the file of a manifest. */
export function manifestText(manifest: DirectoryManifest): string {
  return MANIFEST.text(manifest);
}

/** Where the manifest of an image file lies. */
export function manifestPath(imagePath: string): string {
  return `${imagePath}.json`;
}

/** File name of a manifest's image; undefined for a file that is not a manifest. */
export function imageOfManifest(fileName: string): string | undefined {
  return fileName.endsWith('.json') ? fileName.slice(0, -'.json'.length) : undefined;
}

/** Reads a manifest; undefined if there is none, or if what is there is not one of ours. */
export async function readManifest(imagePath: string): Promise<DirectoryManifest | undefined> {
  const path = manifestPath(imagePath);
  // Reading a FIFO would never end, and a symbolic link is not ours.
  if ((await unlessMissing(lstat(path)))?.isFile() !== true) return undefined;
  try {
    return await MANIFEST.read(path);
  } catch (error) {
    if (error instanceof DamagedRecord) return undefined;
    throw error;
  }
}
