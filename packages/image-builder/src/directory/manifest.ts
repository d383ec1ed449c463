import { lstat, readFile } from 'node:fs/promises';
import { type ImageFormat, isImageFormat } from '../formats.ts';
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
  readonly metadata: Readonly<Record<string, string>>;
}

const STRINGS = ['image-id', 'image-name', 'format', 'md5', 'sha256', 'built', 'uploaded'] as const;

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
    const manifest: unknown = JSON.parse(await readFile(path, 'utf8'));
    return isManifest(manifest) ? manifest : undefined;
  } catch (error) {
    if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

function isManifest(value: unknown): value is DirectoryManifest {
  if (typeof value !== 'object' || value === null) return false;
  const fields = value as Record<string, unknown>;
  return (
    STRINGS.every((key) => typeof fields[key] === 'string') &&
    typeof fields.size === 'number' &&
    isImageFormat(fields.format)
  );
}
