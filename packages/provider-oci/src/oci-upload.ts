import type { Checksums, ImageKey, SettingsOf, UploadRequest } from '@nodepool-builder/image-builder';
import type { CloudUpload, UploadRecords } from '@nodepool-builder/image-builder/plugin';
import { type Blob, type BlobState, cancelUpload, uploadSmallBlob } from './blob-upload.ts';
import type { OciEntry } from './oci-settings.ts';
import type { Registry } from './registry.ts';

const TEXT = { type: 'string', minLength: 1 } as const;

/** Record of an unfinished upload, written before the first request to the registry. */
export const UPLOAD = {
  type: 'object',
  required: ['upload-id', 'image-id', 'image-name', 'uploaded', 'changed'],
  properties: {
    'upload-id': TEXT,
    'image-id': TEXT,
    'image-name': TEXT,
    /** Time of the first attempt in ISO 8601. */
    uploaded: TEXT,
    /** Time of this record's last change in ISO 8601. */
    changed: TEXT,
    /** Digests of untagged manifests that an index will refer to. */
    manifests: { type: 'array', items: TEXT },
    /** Digests of manifests whose tag moves to this upload. */
    replaced: { type: 'array', items: TEXT },
    /** Name of the blob in transit: how it is created from the file, or its digest. */
    'blob-name': TEXT,
    location: TEXT,
    'min-chunk-size': { type: 'integer', minimum: 0 },
    /** Digest and length, known once all bytes have been sent. */
    digest: TEXT,
    size: { type: 'integer', minimum: 0 },
    'diff-id': TEXT,
    /** Upload URL of the configuration, which is a small blob. */
    'configuration-location': TEXT,
    md5: TEXT,
    sha256: TEXT,
  },
} as const;

export type UploadRecord = SettingsOf<typeof UPLOAD>;

/** Returns the image of an upload. */
export function imageOf(record: UploadRecord): ImageKey {
  return { imageId: record['image-id'], imageName: record['image-name'] };
}

/**
 * Reads the record of an upload, or creates one.
 *
 * @param replaced digest of the manifest that currently has the tag
 */
export async function beginRecord(
  records: UploadRecords<typeof UPLOAD>,
  { uploadId, imageId, imageName }: UploadRequest,
  replaced: string | undefined,
): Promise<UploadRecord> {
  const existing = await records.read(uploadId);
  if (existing !== undefined && replaced === undefined) return existing;
  const now = new Date().toISOString();
  const ids = { 'upload-id': uploadId, 'image-id': imageId, 'image-name': imageName };
  const record = existing ?? { ...ids, uploaded: now, changed: now };
  const digests = new Set([...(record.replaced ?? []), ...(replaced === undefined ? [] : [replaced])]);
  return await writeRecord(records, { ...record, ...(digests.size > 0 && { replaced: [...digests] }) });
}

/** Writes a record with the current time. @returns the written record */
async function writeRecord(
  records: UploadRecords<typeof UPLOAD>,
  record: UploadRecord,
): Promise<UploadRecord> {
  const written = { ...record, changed: new Date().toISOString() };
  await records.write(record['upload-id'], written);
  return written;
}

/** Parameters of one upload. */
export interface OciUpload extends CloudUpload {
  readonly registry: Registry;
  readonly entry: OciEntry;
  readonly records: UploadRecords<typeof UPLOAD>;
}

/** Properties of an image's layer, known once all bytes have been sent. */
export interface SentLayer {
  readonly blob: Blob;
  /** Digest of the uncompressed layer. */
  readonly diffId: string;
  /** Digests of the file. */
  readonly checksums: Checksums;
}

/** Reads a blob's state from the record, and provides a way to update it. */
export async function blobState(
  { registry, records, request: { uploadId }, signal }: OciUpload,
  name: string,
  /** Called once all bytes have been sent. */
  layer: () => Pick<SentLayer, 'diffId' | 'checksums'> | undefined = () => undefined,
): Promise<{ readonly state: BlobState; readonly save: (state: BlobState) => Promise<void> }> {
  const record = await records.read(uploadId);
  const isSame = record?.['blob-name'] === name;
  if (!isSame && record?.location !== undefined) await cancelUpload(registry, record.location, signal);
  const { location, digest, size, 'min-chunk-size': minChunkSize } = isSame ? record : {};
  const isSent = digest !== undefined && size !== undefined;
  return {
    state: { location, minChunkSize, ...(isSent && { blob: { digest, size } }) },
    save: async ({ location: next, minChunkSize: smallest, blob }) => {
      const before = await recordOf(records, uploadId);
      const { digest: _1, size: _2, 'diff-id': _3, md5: _4, sha256: _5, location: _6, ...identity } = before;
      const sent = blob && layer();
      await writeRecord(records, {
        ...identity,
        'blob-name': name,
        ...(next !== undefined && { location: next }),
        ...(smallest !== undefined && { 'min-chunk-size': smallest }),
        ...blob,
        ...(sent && { 'diff-id': sent.diffId, ...sent.checksums }),
      });
    },
  };
}

/** Cancels unfinished blob uploads. */
export async function cancelBlobs(
  registry: Registry,
  { location, 'configuration-location': small }: UploadRecord,
  signal: AbortSignal,
): Promise<void> {
  for (const one of [location, small]) if (one !== undefined) await cancelUpload(registry, one, signal);
}

/** Pushes the configuration of an image. */
export async function pushConfiguration(
  { registry, records, request: { uploadId }, signal }: OciUpload,
  bytes: Buffer,
): Promise<Blob> {
  const { 'configuration-location': before } = await recordOf(records, uploadId);
  if (before !== undefined) await cancelUpload(registry, before, signal);
  const save = async (location: string): Promise<void> => {
    await writeRecord(records, {
      ...(await recordOf(records, uploadId)),
      'configuration-location': location,
    });
  };
  return await uploadSmallBlob(registry, bytes, save, signal);
}

async function recordOf(records: UploadRecords<typeof UPLOAD>, uploadId: string): Promise<UploadRecord> {
  const record = await records.read(uploadId);
  if (record === undefined) throw new Error(`upload ${uploadId} has no record`);
  return record;
}

/** Records an untagged manifest before it is pushed. */
export async function addManifest(
  { records, request: { uploadId } }: OciUpload,
  digest: string,
): Promise<void> {
  const record = await recordOf(records, uploadId);
  await writeRecord(records, { ...record, manifests: [...new Set([...(record.manifests ?? []), digest])] });
}
