import { FORMAT_NAMES } from './formats.ts';
import { DamagedRecordError, RecordType } from './record-directory.ts';
import { NUMBER, objectOf, type SettingsOf, TEXT } from './settings-schema.ts';
import { errnoOf } from './system-error.ts';
import type { Logger } from './types.ts';

const FORMAT = { enum: FORMAT_NAMES } as const;

const FILE = objectOf(
  {
    format: FORMAT,
    /** Size in bytes. */
    size: NUMBER,
    /** ISO 8601 time. The checksums belong to a file with this time and size. */
    mtime: TEXT,
    md5: TEXT,
    sha256: TEXT,
  },
  {
    /**
     * The file of the same image that it was converted from, at that time. Absent for a file that its builder made, or
     * if the digest was unknown.
     */
    from: objectOf({ format: FORMAT, sha256: TEXT }),
  },
);

const SCHEMA = objectOf(
  {
    version: { const: 1 },
    'image-id': TEXT,
    files: { type: 'array', items: FILE },
  },
  {
    /** Image name; absent for a conversion of a file that was added by hand. */
    'image-name': TEXT,
    /** Class of the builder. */
    builder: TEXT,
    /** Start and end of the build, ISO 8601. */
    started: TEXT,
    finished: TEXT,
    /** Creation time of an image that was made elsewhere, ISO 8601. Default: `finished`. */
    built: TEXT,
    /** Maximum number of bytes that its build was seen to use on disk. */
    'disk-space': NUMBER,
    /** Providers that have the image without an upload. */
    snapshots: { type: 'array', items: objectOf({ provider: TEXT, externalId: TEXT }) },
  },
);

/** Record of an image: `.nodepool-builder/manifests/<image-id>.json`. */
export type Manifest = SettingsOf<typeof SCHEMA>;

/** One file of a {@link Manifest}. */
export type ManifestFile = SettingsOf<typeof FILE>;

export const MANIFEST: RecordType<typeof SCHEMA> = new RecordType(SCHEMA);

/** Formats the modification time of a file for a manifest. */
export function manifestTime(mtimeMs: number): string {
  return new Date(mtimeMs).toISOString();
}

/** Reads the manifest of an image, if it has one that this user may read. A damaged one is logged and ignored. */
export async function readManifest(
  path: string,
  imageId: string,
  logger?: Logger,
): Promise<Manifest | undefined> {
  try {
    const manifest = await MANIFEST.read(path);
    if (manifest === undefined || manifest['image-id'] === imageId) return manifest;
    throw new DamagedRecordError(path, `it is not about image ${imageId}`);
  } catch (error) {
    if (errnoOf(error) === 'EACCES') return undefined;
    if (!(error instanceof DamagedRecordError)) throw error;
    const outcome = 'the image is offered without its name and checksums';
    logger?.warn(`the manifest ${error.message}; ${outcome}`);
    return undefined;
  }
}
