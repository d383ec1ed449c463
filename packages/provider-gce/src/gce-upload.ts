import { createHash, randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import type { File } from '@google-cloud/storage';
import type { SettingsOf } from '@nodepool-builder/image-builder';
import { atOrigin, dataExtents, metered, portion } from '@nodepool-builder/image-builder/internal';
import {
  CloudError,
  type CloudUpload,
  cloudError,
  poll,
  type UploadPart,
  type UploadRecords,
  unlessAbsent,
} from '@nodepool-builder/image-builder/plugin';
import { getImage, type Image, type ImageSite, imagesWith, isOperationDone } from './gce-images.ts';
import type { GceEntry } from './gce-settings.ts';
import { imageDescription, imageLabels, imageResourceName, labelValue, taggedImage } from './image-labels.ts';
import { diskArchive, diskSize } from './sparse-tar.ts';

/** Prefix of our object names. */
const OBJECTS = 'nodepool-builder/';

/** Bytes per request of a resumable upload: a multiple of 256 KiB. */
const CHUNK = 8 * 2 ** 20;

/** Compression level that keeps up with a gigabit network. */
const GZIP_LEVEL = 4;

/** Percentage of an upload's progress for the transfer. */
const TRANSFER = 90;

const TEXT = { type: 'string', minLength: 1 } as const;

/** Record of an unfinished upload from this host. */
export const UPLOAD = {
  type: 'object',
  required: ['upload-id', 'request-id'],
  properties: {
    'upload-id': TEXT,
    /** Id of the request that creates the image, so that a repeated request creates no second image. */
    'request-id': TEXT,
    /** Session of the resumable upload. */
    session: TEXT,
    /** True if Cloud Storage has the whole object and its checksum has been verified. */
    transferred: { type: 'boolean' },
    /** Operation that creates the image. */
    operation: TEXT,
  },
} as const;

type StoredRecord = SettingsOf<typeof UPLOAD>;
type UploadRecord = { -readonly [Key in keyof StoredRecord]: StoredRecord[Key] };

/** Parameters of one upload. */
export interface GceUpload extends ImageSite, CloudUpload {
  readonly entry: GceEntry;
  readonly records: UploadRecords<typeof UPLOAD>;
}

/** Uploads a raw image and creates a Compute Engine image from it. @returns image name */
export async function uploadImage(upload: GceUpload): Promise<string> {
  const { request, records } = upload;
  const record: UploadRecord = (await records.read(request.uploadId)) ?? {
    'upload-id': request.uploadId,
    'request-id': randomUUID(),
  };
  const [found] = await imagesWith(upload, 'uploadId', request.uploadId);
  if (found?.name && found.status === 'READY') return found.name;
  if (found === undefined) {
    await records.write(request.uploadId, record);
    await transfer(upload, record);
  }
  const name = found?.name ?? (await createImage(upload, record));
  await waitForImage(upload, name, record);
  return name;
}

/** Returns the object of an upload. */
async function objectOf(
  { session, entry, signal }: Pick<GceUpload, 'session' | 'entry' | 'signal'>,
  uploadId: string,
): Promise<File> {
  signal.throwIfAborted();
  const { 'bucket-name': bucket } = entry;
  if (bucket === undefined) {
    throw cloudError('bad-request', `provider ${entry.name}`, 'an upload needs the key bucket-name');
  }
  const { storage } = await session.open();
  return storage.bucket(bucket).file(`${OBJECTS}${encodeURIComponent(uploadId)}.tar.gz`);
}

/** Streams the disk as a compressed archive to Cloud Storage, or resumes an interrupted transfer. */
async function transfer(upload: GceUpload, record: UploadRecord): Promise<void> {
  if (record.transferred === true) return;
  const { session, request, records, signal } = upload;
  const file = await objectOf(upload, request.uploadId);
  const earlier = record.session;
  try {
    if (earlier !== undefined && (await isStored(upload, file))) {
      record.transferred = true;
      await records.write(request.uploadId, record);
      return;
    }
    if (earlier === undefined) {
      const metadata = {
        contentType: 'application/gzip',
        metadata: { uploadId: request.uploadId, provider: upload.entry.name },
      };
      const [uri] = await session.call(
        'StartResumableUpload',
        signal,
        async () => await file.createResumableUpload({ metadata }),
      );
      // Requests of the session contain a token, so they stay at the endpoint, whatever host the server returns.
      record.session = atOrigin(new URL(uri), new URL(file.storage.apiEndpoint)).href;
      await records.write(request.uploadId, record);
    }
    await session.once('Upload', signal, async () => {
      await send(upload, file, record.session ?? '');
    });
  } catch (error) {
    const isGone =
      error instanceof CloudError &&
      ['not-found', 'bad-request', 'conflict', 'image-failed'].includes(error.code);
    if (earlier === undefined || !isGone) throw error;
    // The session has expired, or the archive has changed.
    const fresh: UploadRecord = { 'upload-id': request.uploadId, 'request-id': record['request-id'] };
    delete record.session;
    await records.write(request.uploadId, fresh);
    await transfer(upload, fresh);
    return;
  }
  record.transferred = true;
  await records.write(request.uploadId, record);
}

/**
 * Returns whether an earlier process sent the last byte. Cloud Storage has then verified the checksum of the whole
 * object.
 */
async function isStored({ session, request, signal }: GceUpload, file: File): Promise<boolean> {
  const asked = session.call('GetObject', signal, async () => {
    const [{ metadata }] = await file.getMetadata();
    return metadata?.uploadId === request.uploadId;
  });
  return (await asked.catch(unlessAbsent)) ?? false;
}

async function send(upload: GceUpload, file: File, uri: string): Promise<void> {
  const { request, limit, signal, onProgress } = upload;
  const { path } = request.file;
  const parts = await dataExtents({ path, format: 'raw' }, { signal });
  const archive = diskArchive(path, parts, { signal, onProgress: portion(onProgress, 0, TRANSFER) });
  const target = file.createWriteStream({ uri, resumable: true, chunkSize: CHUNK, validation: 'crc32c' });
  const gzip = createGzip({ level: GZIP_LEVEL });
  const compressed = metered(gzip as AsyncIterable<Buffer>, { limit, signal, onBytes: () => {} });
  await Promise.all([
    pipeline(Readable.from(archive), gzip, { signal }),
    pipeline(Readable.from(compressed, { objectMode: false }), target, { signal }),
  ]);
}

/** Requests the image, or finds the one that an earlier request created. @returns image name */
async function createImage(upload: GceUpload, record: UploadRecord): Promise<string> {
  const { session, entry, request, records, signal } = upload;
  const { 'bucket-name': bucket = '', 'guest-os-features': features, 'storage-locations': locations } = entry;
  const { metadata = {}, uploadId } = request;
  const file = await objectOf(upload, uploadId);
  const first = imageResourceName(request);
  const second = `${first.slice(0, 50)}-${labelValue(`${uploadId}!`).slice(-8)}`;
  for (const name of [first, second]) {
    const image: Image = {
      name,
      description: imageDescription(entry.name, request),
      labels: imageLabels(entry.name, request, entry.tags),
      rawDisk: {
        source: `https://storage.googleapis.com/${bucket}/${file.name}`,
        containerType: 'TAR',
      },
      diskSizeGb: diskSize(request.file.size) / 2 ** 30,
      ...family(entry, metadata),
      ...(metadata.architecture && {
        architecture: ARCHITECTURES[metadata.architecture.toLowerCase()] ?? metadata.architecture,
      }),
      ...(features && { guestOsFeatures: features.map((type) => ({ type })) }),
      ...(locations && { storageLocations: [...locations] }),
    };
    try {
      const operation = await session.call('InsertImage', signal, async ({ images, project }) => {
        const requestId = requestIdFor(record['request-id'], name);
        const [started] = await images.insert({ project, imageResource: image, requestId });
        return (started.latestResponse as { readonly name?: string }).name;
      });
      if (operation) {
        record.operation = operation;
        await records.write(request.uploadId, record);
      }
      return name;
    } catch (error) {
      if (!(error instanceof CloudError) || error.code !== 'conflict') throw error;
      const existing = await getImage(upload, name);
      if (taggedImage(existing?.description)?.uploadId === uploadId) return name;
    }
  }
  throw cloudError(
    'conflict',
    `provider ${entry.name}`,
    `an image ${first} that this upload did not create already exists`,
  );
}

/** Derives a UUID that is always the same for one name. */
function requestIdFor(requestId: string, name: string): string {
  const hex = createHash('sha256').update(`${requestId} ${name}`).digest('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

/** Architecture names in Compute Engine. */
const ARCHITECTURES: Readonly<Record<string, string>> = {
  x86_64: 'X86_64',
  amd64: 'X86_64',
  arm64: 'ARM64',
  aarch64: 'ARM64',
};

function family(entry: GceEntry, metadata: Readonly<Record<string, string>>): { family?: string } {
  const name = metadata.family ?? entry['image-family'];
  return name === undefined ? {} : { family: name };
}

async function waitForImage(upload: GceUpload, name: string, record: UploadRecord): Promise<void> {
  const { entry, session, signal, interval } = upload;
  const task = `image ${name}`;
  const subject = session.subject(task);
  const { operation } = record;
  const isReady = async (): Promise<true | undefined> => {
    const isDone = operation === undefined || (await isOperationDone(upload, operation, task));
    const image = await getImage(upload, name);
    if (image === undefined && isDone) throw cloudError('image-failed', subject, 'it is gone');
    if (image?.status === 'FAILED') throw cloudError('image-failed', subject, 'its status is FAILED');
    return image?.status === 'READY' ? true : undefined;
  };
  await poll(isReady, { subject, timeout: entry['image-import-timeout'], interval, signal });
}

/** The parts of an upload that its removal needs. */
type ObjectSite = Pick<GceUpload, 'session' | 'entry' | 'signal'>;

/** Lists the objects of a provider's unfinished uploads. */
export async function listObjects({ session, entry, signal }: ObjectSite): Promise<readonly UploadPart[]> {
  const { 'bucket-name': bucket, name } = entry;
  if (bucket === undefined) return [];
  const [files] = await session.call(
    'ListObjects',
    signal,
    async ({ storage }) => await storage.bucket(bucket).getFiles({ prefix: OBJECTS }),
  );
  return files.flatMap((file): UploadPart | readonly [] => {
    const { metadata = {}, updated = '', generation } = file.metadata;
    const { uploadId, provider } = metadata;
    if (typeof uploadId !== 'string' || provider !== name) return [];
    return {
      uploadId,
      subject: `object ${bucket}/${file.name}`,
      changedAt: new Date(updated),
      remove: async (later) => {
        try {
          await session.call('DeleteObject', later, async () => {
            await file.delete({ ifGenerationMatch: Number(generation) });
          });
          return true;
        } catch (error) {
          if (error instanceof CloudError && ['not-found', 'conflict'].includes(error.code)) return false;
          throw error;
        }
      },
    };
  });
}

/** Removes the object of an upload. */
export async function removeObject(
  upload: ObjectSite & Pick<GceUpload, 'records'>,
  uploadId: string,
): Promise<void> {
  const { session, signal } = upload;
  if (upload.entry['bucket-name'] === undefined) return;
  await cancelTransfer(upload, uploadId);
  const file = await objectOf(upload, uploadId);
  await session.call('DeleteObject', signal, async () => {
    await file.delete({ ignoreNotFound: true });
  });
}

/** Ends the resumable upload of this host. Keeps a complete object. */
export async function cancelTransfer(
  upload: ObjectSite & Pick<GceUpload, 'records'>,
  uploadId: string,
): Promise<void> {
  const { session, signal, records } = upload;
  const record = await records.read(uploadId);
  if (record?.session !== undefined && record.transferred !== true) {
    // Without this request, the session would remain for a week.
    const file = await objectOf(upload, uploadId);
    await session.call('CancelUpload', signal, async () => {
      await file.storage.authClient?.request?.({
        url: record.session ?? '',
        method: 'DELETE',
        validateStatus: () => true,
      });
    });
  }
}
