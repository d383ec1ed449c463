import { readFile as readFileWithCallback } from 'node:fs';
import { promisify } from 'node:util';
import { ImageError } from './errors.ts';
import { type ImageFormat, isImageFormat } from './formats.ts';
import { unlessMissing } from './system-error.ts';
import type { Snapshot } from './types.ts';

/** Takes a third less time than that of `node:fs/promises`: with thousands of images a start consists of it. */
const readFile = promisify(readFileWithCallback);

/** One file of a {@link Manifest}. */
export interface ManifestFile {
  readonly format: ImageFormat;
  /** Bytes. */
  readonly size: number;
  /** ISO 8601; together with the size it tells whether the checksums are still those of the file. */
  readonly mtime: string;
  readonly md5: string;
  readonly sha256: string;
}

/** What is known of an image besides its files: `.nodepool-builder/manifests/<image-id>.json`. */
export interface Manifest {
  readonly version: 1;
  readonly 'image-id': string;
  /** Absent if a file that was put there by hand was converted. */
  readonly 'image-name'?: string;
  /** The class that built it. */
  readonly builder?: string;
  /** When the build began and ended, ISO 8601. */
  readonly started?: string;
  readonly finished?: string;
  /** Creation time of an image that was made elsewhere, ISO 8601. Default: {@link finished}. */
  readonly built?: string;
  readonly files: readonly ManifestFile[];
  /** Where it lies already without an upload. */
  readonly snapshots?: readonly Snapshot[];
}

/** A file's time of modification as a manifest has it. */
export function manifestTime(mtimeMs: number): string {
  return new Date(mtimeMs).toISOString();
}

/** A manifest as its file has it. */
export function manifestText(manifest: Manifest): string {
  return `${JSON.stringify(manifest, null, 2)}\n`;
}

/**
 * Reads the manifest of an image; undefined if it has none.
 *
 * @throws ImageError `manifest-damaged`
 */
export async function readManifest(path: string, imageId: string): Promise<Manifest | undefined> {
  const text = await unlessMissing(readFile(path, 'utf8'));
  return text === undefined ? undefined : parseManifest(text, path, imageId);
}

/**
 * Checks what {@link manifestText} wrote and others may have touched.
 *
 * @throws ImageError `manifest-damaged`
 */
export function parseManifest(text: string, path: string, imageId: string): Manifest {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw damaged(path, 'it is not JSON', cause);
  }
  if (!isRecord(value) || value.version !== 1) throw damaged(path, 'its version is not 1');
  if (value['image-id'] !== imageId) throw damaged(path, `it is not about image ${imageId}`);
  for (const key of ['image-name', 'builder', 'started', 'finished', 'built']) {
    if (!['string', 'undefined'].includes(typeof value[key]))
      throw damaged(path, `its ${key} is not a string`);
  }
  if (!Array.isArray(value.files) || !value.files.every(isManifestFile)) {
    throw damaged(path, 'its list of files makes no sense');
  }
  const { snapshots = [] } = value;
  if (!Array.isArray(snapshots) || !snapshots.every(isSnapshot)) {
    throw damaged(path, 'its list of snapshots makes no sense');
  }
  return value as unknown as Manifest;
}

function isManifestFile(file: unknown): file is ManifestFile {
  if (!isRecord(file)) return false;
  const { format, size, ...texts } = file;
  return (
    isImageFormat(format) &&
    typeof size === 'number' &&
    ['mtime', 'md5', 'sha256'].every((key) => typeof texts[key] === 'string')
  );
}

function isSnapshot(snapshot: unknown): snapshot is Snapshot {
  return isRecord(snapshot) && ['provider', 'externalId'].every((key) => typeof snapshot[key] === 'string');
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function damaged(path: string, reason: string, cause?: unknown): ImageError {
  return new ImageError(
    'manifest-damaged',
    `the manifest "${path}" is damaged: ${reason}; the image is offered without its name and checksums`,
    { cause },
  );
}
