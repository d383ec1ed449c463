import { ImageError } from './errors.ts';
import { FORMAT_NAMES, type ImageFormat } from './formats.ts';
import { DamagedRecord, RecordType } from './record-directory.ts';
import type { Snapshot } from './types.ts';

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

/** Record of an image: `.nodepool-builder/manifests/<image-id>.json`. */
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
  /** Providers that have the image without an upload. */
  readonly snapshots?: readonly Snapshot[];
}

/** Time of modification of a file, in the notation of a manifest. */
export function manifestTime(mtimeMs: number): string {
  return new Date(mtimeMs).toISOString();
}

const TEXT = { type: 'string' } as const;

const MANIFEST = new RecordType({
  type: 'object',
  required: ['version', 'image-id', 'files'],
  properties: {
    version: { const: 1 },
    'image-id': TEXT,
    'image-name': TEXT,
    builder: TEXT,
    started: TEXT,
    finished: TEXT,
    built: TEXT,
    files: {
      type: 'array',
      items: {
        type: 'object',
        required: ['format', 'size', 'mtime', 'md5', 'sha256'],
        properties: {
          format: { enum: FORMAT_NAMES },
          size: { type: 'number' },
          mtime: TEXT,
          md5: TEXT,
          sha256: TEXT,
        },
      },
    },
    snapshots: {
      type: 'array',
      items: {
        type: 'object',
        required: ['provider', 'externalId'],
        properties: { provider: TEXT, externalId: TEXT },
      },
    },
  },
});

/** Writes a manifest durably. */
export async function writeManifest(path: string, manifest: Manifest): Promise<void> {
  await MANIFEST.write(path, manifest);
}

/**
 * Reads the manifest of an image; undefined if it has none.
 *
 * @throws ImageError `manifest-damaged`
 */
export async function readManifest(path: string, imageId: string): Promise<Manifest | undefined> {
  try {
    const manifest = await MANIFEST.read(path);
    if (manifest === undefined || manifest['image-id'] === imageId) return manifest;
    throw new DamagedRecord(path, `it is not about image ${imageId}`);
  } catch (cause) {
    if (!(cause instanceof DamagedRecord)) throw cause;
    throw new ImageError(
      'manifest-damaged',
      `the manifest ${cause.message}; the image is offered without its name and checksums`,
      { cause },
    );
  }
}
