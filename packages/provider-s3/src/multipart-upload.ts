import { createHash } from 'node:crypto';
import type { CompletedPart, MultipartUpload as MultipartUploadEntry, Part } from '@aws-sdk/client-s3';
import type { Checksums, ImageFile, Progress } from '@nodepool-builder/image-builder';
import { type BandwidthLimit, CloudError, SteadyFile } from '@nodepool-builder/image-builder/module-kit';
import { type ObjectStore, unlessMissing } from './object-store.ts';

/** Bytes of a part. S3 takes at most 10,000 parts. */
const PART_SIZE = 16 * 2 ** 20;
const MOST_PARTS = 9_000;

export interface MultipartUpload {
  readonly store: ObjectStore;
  readonly key: string;
  readonly file: ImageFile;
  /** Parts in memory and on the way at a time. */
  readonly concurrency: number;
  readonly limit: BandwidthLimit | undefined;
  readonly signal: AbortSignal;
  readonly onProgress: (progress: Progress) => void;
}

/** Starts a multipart upload. @returns its id in the object store */
export async function startMultipart({ store, key, signal }: Omit<MultipartUpload, 'file'>): Promise<string> {
  const input = { Bucket: store.bucket, Key: key, ContentType: 'application/octet-stream' };
  const { UploadId: id = '' } = await store.call('CreateMultipartUpload', key, signal, (client, options) =>
    client.createMultipartUpload(input, options),
  );
  return id;
}

/**
 * Sends the parts of a file that the object store does not have, and makes the object of them. Each part is protected by
 * its MD5, and the object by that of all parts.
 *
 * @returns the digests of the file
 */
export async function sendParts(upload: MultipartUpload, id: string): Promise<Checksums> {
  const { store, key, file, concurrency, signal, onProgress } = upload;
  const there = await listParts(upload, id);
  const partSize = Math.max(PART_SIZE, Math.ceil(file.size / MOST_PARTS / 2 ** 20) * 2 ** 20);
  const hashes = file.checksums ? [] : [createHash('md5'), createHash('sha256')];
  const digests: Buffer[] = [];
  const failure = new AbortController();
  const either = AbortSignal.any([signal, failure.signal]);
  const running = new Set<Promise<void>>();
  let [done, position] = [0, 0];
  const source = await SteadyFile.open(file.path, true);
  try {
    for (let number = 1; position < file.size || number === 1; number++) {
      const bytes = Buffer.allocUnsafe(Math.min(partSize, file.size - position));
      await fill(source, bytes, position);
      position += bytes.length;
      for (const hash of hashes) hash.update(bytes);
      const digest = createHash('md5').update(bytes).digest();
      digests.push(digest);
      const known = there.get(number);
      const isThere = known?.ETag === `"${digest.toString('hex')}"` && known.Size === bytes.length;
      const send = async (): Promise<void> => {
        if (!isThere) await sendPart(upload, { id, number, bytes, digest, signal: either });
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
  const Parts = digests.map(
    (digest, index): CompletedPart => ({ PartNumber: index + 1, ETag: `"${digest.toString('hex')}"` }),
  );
  const input = { Bucket: store.bucket, Key: key, UploadId: id, MultipartUpload: { Parts } };
  await store.call('CompleteMultipartUpload', key, signal, (client, options) =>
    client.completeMultipartUpload(input, options),
  );
  await verify(upload, digests);
  const [md5 = '', sha256 = ''] = hashes.map((hash) => hash.digest('hex'));
  return file.checksums ?? { md5, sha256 };
}

/** Compares what the object store has with what was sent. */
async function verify(
  { store, key, file, signal }: MultipartUpload,
  digests: readonly Buffer[],
): Promise<void> {
  const { size, etag = '' } = (await store.head(key, signal)) ?? {};
  const wanted = `"${createHash('md5').update(Buffer.concat(digests)).digest('hex')}-${digests.length}"`;
  // With some kinds of encryption, the ETag is no digest.
  const isOther = /^"[0-9a-f]{32}-\d+"$/.test(etag) && etag !== wanted;
  if (size === file.size && !isOther) return;
  const reason = `it has ${size ?? 'no'} bytes and the ETag ${etag}, not ${file.size} bytes and ${wanted}`;
  throw new CloudError('image-failed', `object ${store.bucket}/${key}`, reason);
}

interface PartToSend {
  readonly id: string;
  readonly number: number;
  readonly bytes: Buffer;
  readonly digest: Buffer;
  readonly signal: AbortSignal;
}

async function sendPart({ store, key, limit }: MultipartUpload, part: PartToSend): Promise<void> {
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
  await store.call('UploadPart', key, signal, (client, options) => client.uploadPart(input, options));
}

/** The parts that the object store has, by number. */
async function listParts({ store, key, signal }: MultipartUpload, id: string): Promise<Map<number, Part>> {
  const parts = new Map<number, Part>();
  let marker: string | undefined;
  do {
    const query = {
      Bucket: store.bucket,
      Key: key,
      UploadId: id,
      ...(marker && { PartNumberMarker: marker }),
    };
    const page = await store.call('ListParts', key, signal, (client, options) =>
      client.listParts(query, options),
    );
    for (const part of page.Parts ?? []) parts.set(part.PartNumber ?? 0, part);
    marker = page.IsTruncated === true ? page.NextPartNumberMarker : undefined;
  } while (marker !== undefined);
  return parts;
}

/** Whether a multipart upload can go on. */
export async function isOpen(upload: MultipartUpload, id: string): Promise<boolean> {
  return (await listParts(upload, id).catch(unlessMissing)) !== undefined;
}

/** Unfinished multipart uploads of keys that begin with `prefix`. */
export async function listMultiparts(
  store: ObjectStore,
  prefix: string,
  signal: AbortSignal,
): Promise<MultipartUploadEntry[]> {
  const query = { Bucket: store.bucket, Prefix: prefix };
  const { Uploads: uploads = [] } = await store.call(
    'ListMultipartUploads',
    prefix,
    signal,
    (client, options) => client.listMultipartUploads(query, options),
  );
  return uploads;
}

/** Ends all multipart uploads of a key, with their parts. */
export async function abortMultiparts(store: ObjectStore, key: string, signal: AbortSignal): Promise<void> {
  for (const { Key, UploadId } of await listMultiparts(store, key, signal)) {
    if (Key !== key) continue;
    const aborted = store.call('AbortMultipartUpload', key, signal, (client, options) =>
      client.abortMultipartUpload({ Bucket: store.bucket, Key, UploadId }, options),
    );
    await aborted.catch(unlessMissing);
  }
}

async function fill(source: SteadyFile, bytes: Buffer, position: number): Promise<void> {
  for (let length = 0; length < bytes.length; ) {
    length += (await source.read(bytes.subarray(length), position + length)).length;
  }
}
