import { createHash } from 'node:crypto';
import type { CompletedPart, Part } from '@aws-sdk/client-s3';
import { type Checksums, ImageError, type ImageFile, type Progress } from '@nodepool-builder/image-builder';
import { SteadyFile } from '@nodepool-builder/image-builder/internal';
import { type BandwidthLimit, cloudError } from '@nodepool-builder/image-builder/plugin';
import { type ObjectState, type ObjectStore, unlessMissing } from './object-store.ts';
import { uploadDigest } from './s3-keys.ts';

/** Part size in bytes. S3 accepts at most 10,000 parts. */
const PART_SIZE = 16 * 2 ** 20;
const MAX_PARTS = 9_000;

/** Object metadata keys: its upload, and the SHA-256 of the file if it was known at the start. */
const [UPLOAD, SHA256] = ['upload', 'sha256'];

export interface MultipartUpload {
  readonly store: ObjectStore;
  readonly key: string;
  readonly uploadId: string;
  readonly file: ImageFile;
  /** Max parts in memory and in transit. */
  readonly concurrency: number;
  readonly limit: BandwidthLimit | undefined;
  readonly signal: AbortSignal;
  readonly onProgress: (progress: Progress) => void;
}

/** A multipart upload in the object store. */
export interface Multipart {
  readonly id: string;
  /** True if part ETags differ from the MD5, as with SSE-KMS. */
  readonly hasOpaqueEtags: boolean;
}

/** Returns whether an upload created this object. */
export function isMadeBy(uploadId: string, { metadata }: ObjectState): boolean {
  return metadata[UPLOAD] === uploadDigest(uploadId);
}

/** Returns whether an object contains all bytes of an upload's file, as far as the object store reports it. */
export function hasFile({ uploadId, file }: MultipartUpload, object: ObjectState): boolean {
  const isSame = object.metadata[SHA256] === file.checksums?.sha256;
  return isMadeBy(uploadId, object) && isSame && object.size === file.size;
}

export async function startMultipart({
  store,
  key,
  uploadId,
  file,
  signal,
}: MultipartUpload): Promise<Multipart> {
  const sha256 = file.checksums && { [SHA256]: file.checksums.sha256 };
  const Metadata = { [UPLOAD]: uploadDigest(uploadId), ...sha256 };
  const input = { Bucket: store.bucket, Key: key, ContentType: 'application/octet-stream', Metadata };
  const response = await store.call('CreateMultipartUpload', key, signal, (client, options) =>
    client.createMultipartUpload(input, options),
  );
  const { UploadId: id = '', ServerSideEncryption: encryption = '' } = response;
  return { id, hasOpaqueEtags: encryption.startsWith('aws:kms') };
}

/**
 * Sends the parts of a file that the object store does not have, and completes the object. The MD5 of each part
 * protects it.
 *
 * @returns the digests of the file
 */
export async function sendParts(upload: MultipartUpload, multipart: Multipart): Promise<Checksums> {
  const { file, concurrency, signal, onProgress } = upload;
  const there = await listParts(upload, multipart.id);
  const partSize = Math.max(PART_SIZE, Math.ceil(file.size / MAX_PARTS / 2 ** 20) * 2 ** 20);
  const hashes = file.checksums ? [] : [createHash('md5'), createHash('sha256')];
  const digests: Buffer[] = [];
  const etags: string[] = [];
  const failure = new AbortController();
  const either = AbortSignal.any([signal, failure.signal]);
  const running = new Set<Promise<void>>();
  let [done, position] = [0, 0];
  const source = await SteadyFile.open(file.path, true);
  try {
    if (source.size !== file.size) {
      const change = `it has ${source.size} bytes instead of ${file.size}`;
      throw new ImageError(
        'image-changed',
        `"${file.path}" changed before its upload: ${change}; build the image again`,
      );
    }
    for (let number = 1; position < file.size || number === 1; number++) {
      const bytes = Buffer.allocUnsafe(Math.min(partSize, file.size - position));
      await source.read(bytes, position);
      position += bytes.length;
      for (const hash of hashes) hash.update(bytes);
      const digest = createHash('md5').update(bytes).digest();
      digests.push(digest);
      const { ETag: known = '', Size: size } = there.get(number) ?? {};
      // Opaque ETags cannot be compared, but an upload only resumes with the same file.
      const isSame = isDigest(known, digest) || (multipart.hasOpaqueEtags && file.checksums !== undefined);
      const send = async (): Promise<void> => {
        const part = { id: multipart.id, number, bytes, digest, signal: either };
        etags[number - 1] = isSame && size === bytes.length ? known : await sendPart(upload, part);
        done += bytes.length;
        onProgress({ done, total: file.size });
      };
      const task = send();
      running.add(task);
      task.then(
        () => running.delete(task),
        (error: unknown) => failure.abort(error),
      );
      if (running.size >= concurrency) await Promise.race(running);
      either.throwIfAborted();
    }
    await Promise.all(running);
    await source.check();
  } finally {
    await Promise.allSettled(running);
    await source.close();
  }
  signal.throwIfAborted();
  await complete(upload, multipart.id, etags);
  await verify(upload, digests, etags);
  const [md5 = '', sha256 = ''] = hashes.map((hash) => hash.digest('hex'));
  return file.checksums ?? { md5, sha256 };
}

async function complete(
  { store, key, signal }: MultipartUpload,
  id: string,
  etags: readonly string[],
): Promise<void> {
  const Parts = etags.map((ETag, index): CompletedPart => ({ PartNumber: index + 1, ETag }));
  const input = { Bucket: store.bucket, Key: key, UploadId: id, MultipartUpload: { Parts } };
  const completed = store.call('CompleteMultipartUpload', key, signal, (client, options) =>
    client.completeMultipartUpload(input, options),
  );
  // If the response was lost, the upload may be complete and therefore unknown.
  await completed.catch(unlessMissing);
}

/** Compares the stored object with what was sent. */
async function verify(
  upload: MultipartUpload,
  digests: readonly Buffer[],
  etags: readonly string[],
): Promise<void> {
  const { store, key, file, signal } = upload;
  const object = await store.head(key, signal);
  const wanted = `${createHash('md5').update(Buffer.concat(digests)).digest('hex')}-${digests.length}`;
  const isComparable =
    etags.every((etag, index) => isDigest(etag, digests[index])) &&
    /^"?[0-9a-f]{32}-\d+"?$/.test(object?.etag ?? '');
  const isOther = isComparable && object?.etag.replaceAll('"', '') !== wanted;
  if (object !== undefined && hasFile(upload, object) && !isOther) return;
  const { size = 'no', etag = '' } = object ?? {};
  const reason = `it has ${size} bytes and the ETag ${etag}, or was not created by this upload; expected ${file.size} bytes and "${wanted}"`;
  throw cloudError('image-failed', `object ${store.bucket}/${key}`, reason);
}

function isDigest(etag: string, digest: Buffer | undefined): boolean {
  return etag.replaceAll('"', '') === digest?.toString('hex');
}

interface PartToSend {
  readonly id: string;
  readonly number: number;
  readonly bytes: Buffer;
  readonly digest: Buffer;
  readonly signal: AbortSignal;
}

/** @returns the ETag of the part */
async function sendPart({ store, key, limit }: MultipartUpload, part: PartToSend): Promise<string> {
  const { id, number, bytes, digest, signal } = part;
  await limit?.take(bytes.length, signal);
  const input = {
    Bucket: store.bucket,
    Key: key,
    UploadId: id,
    PartNumber: number,
    Body: bytes,
    ContentLength: bytes.length,
    ContentMD5: digest.toString('base64'),
  };
  const sent = store.call('UploadPart', key, signal, (client, options) => client.uploadPart(input, options));
  const response = await sent.catch(unlessMissing);
  if (response !== undefined) return response.ETag ?? `"${digest.toString('hex')}"`;
  const reason = 'another process aborted its multipart upload';
  throw cloudError('image-failed', `object ${store.bucket}/${key}`, reason);
}

/** A multipart upload in the object store. */
type OpenMultipart = Pick<MultipartUpload, 'store' | 'key' | 'signal'>;

/** Lists the stored parts by number. */
async function listParts({ store, key, signal }: OpenMultipart, id: string): Promise<Map<number, Part>> {
  const query = { Bucket: store.bucket, Key: key, UploadId: id };
  const parts = await store.listAll('ListParts', key, signal, async (client, options, marker) => {
    const next = marker === undefined ? {} : { PartNumberMarker: marker };
    const page = await client.listParts({ ...query, ...next }, options);
    const { Parts: entries = [], IsTruncated: isTruncated, NextPartNumberMarker: following } = page;
    return { entries, isTruncated, next: following };
  });
  return new Map(parts.map((part) => [part.PartNumber ?? 0, part]));
}

/**
 * Returns the time of a multipart upload's last part, or 0 without parts. Undefined if the object store does not have
 * it.
 */
export async function lastPartAt(multipart: OpenMultipart, id: string): Promise<number | undefined> {
  const parts = await listParts(multipart, id).catch(unlessMissing);
  return parts && Math.max(0, ...Array.from(parts.values(), ({ LastModified: at }) => at?.getTime() ?? 0));
}

/** Aborts all multipart uploads of a key and removes their parts. */
export async function abortMultiparts({ store, key, signal }: OpenMultipart): Promise<void> {
  const query = { Bucket: store.bucket, Prefix: key };
  const uploads = await store.listAll(
    'ListMultipartUploads',
    key,
    signal,
    async (client, options, marker) => {
      const [KeyMarker, UploadIdMarker] = marker === undefined ? [] : (JSON.parse(marker) as string[]);
      const page = await client.listMultipartUploads({ ...query, KeyMarker, UploadIdMarker }, options);
      const { Uploads: entries = [], IsTruncated: isTruncated, NextKeyMarker: nextKey } = page;
      const next = nextKey && JSON.stringify([nextKey, page.NextUploadIdMarker]);
      return { entries, isTruncated, next };
    },
  );
  for (const { Key, UploadId } of uploads) {
    if (Key !== key) continue;
    const aborted = store.call('AbortMultipartUpload', key, signal, (client, options) =>
      client.abortMultipartUpload({ Bucket: store.bucket, Key, UploadId }, options),
    );
    await aborted.catch(unlessMissing);
  }
}
