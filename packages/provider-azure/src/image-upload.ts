import { randomUUID } from 'node:crypto';
import { ImageError, type Logger } from '@nodepool-builder/image-builder';
import { portion, readImageTags, SteadyFile } from '@nodepool-builder/image-builder/internal';
import { CloudError, type CloudUpload, cloudError, poll } from '@nodepool-builder/image-builder/plugin';
import type { AzureEntry } from './azure-settings.ts';
import { DiskPages } from './disk-pages.ts';
import { diskSize, FOOTER_SIZE, vhdFooter } from './fixed-vhd.ts';
import { type ImagePlan, type ImageStore, isOf, type StoredImage } from './stored-image.ts';
import { isOpen, type UploadDisk, type UploadDisks } from './upload-disks.ts';

/** States in which an image will soon be complete. */
const SETTLING: readonly string[] = ['Creating', 'Updating', 'Migrating'];

export interface ImageUpload extends CloudUpload {
  readonly entry: AzureEntry;
  readonly logger: Logger;
  readonly plan: ImagePlan;
  readonly images: ImageStore;
  readonly disks: UploadDisks;
  /**
   * Name of an earlier attempt's disk, which a list may not show yet. Without checksums, each attempt has its own disk.
   */
  readonly earlierDisk: string | undefined;
  /** Records the name of the disk before it is created. The record replaces that of an earlier attempt. */
  readonly record: (disk: string) => Promise<void>;
  /** Seconds between two polls of an image that is being created. */
  readonly pollInterval: number;
}

/**
 * Uploads an image: sends the bytes to a disk, creates an image from the disk, and deletes the disk. The names of both
 * are derived from the upload, so any process can find and finish an earlier attempt.
 *
 * @returns image id
 */
export async function uploadImage(upload: ImageUpload): Promise<string> {
  const { request } = upload.plan;
  const { path, format } = request.file;
  if (format !== 'raw' && format !== 'vhd-fixed') {
    const reason = `provider ${upload.entry.name}: Azure accepts raw and vhd-fixed, not ${format}; set image-type: raw`;
    throw new ImageError('format-unavailable', reason);
  }
  const file = await SteadyFile.open(path);
  try {
    return await uploadFile(upload, file);
  } finally {
    await file.close();
  }
}

async function uploadFile(upload: ImageUpload, file: SteadyFile): Promise<string> {
  const name = diskName(upload.plan);
  const found = await settledImage(upload, await upload.disks.get(name, upload.signal));
  if (found !== undefined) {
    await removeDisks(upload, upload.earlierDisk ?? name);
    return found.id;
  }
  try {
    return await sendImage(upload, name, file);
  } catch (error) {
    if (upload.signal.aborted || isTimeout(error)) throw error;
    // Azure may have created the image although its response was lost, or another process may have finished the same
    // upload.
    const other = await settledImage(upload).catch(() => undefined);
    if (other === undefined) throw error;
    await removeDisks(upload, name);
    return other.id;
  }
}

async function sendImage(upload: ImageUpload, name: string, file: SteadyFile): Promise<string> {
  const { plan, images, disks, limit, signal, onProgress, logger, subject } = upload;
  const length = plan.request.file.format === 'raw' ? file.size : file.size - FOOTER_SIZE;
  const size = diskSize(length);
  await images.prepare(plan, signal);
  const disk = await openDisk(upload, name, size);
  const isResumed = disk.state === 'ActiveUpload';
  if (isResumed) logger.info(`${subject} resumes on disk ${disk.name}`);
  const pages = new DiskPages({
    subject,
    grant: () => disks.grant(disk.name, signal),
    limit,
    signal,
    onProgress: portion(onProgress, 0, 90),
  });
  try {
    await pages.send(file.path, length, size, vhdFooter(size, disk.uniqueId, disk.createdAt), isResumed);
    await file.check();
    await disks.revoke(disk.name, signal);
  } catch (error) {
    // The next attempt can resume from the existing resources, unless it would fail as well.
    const isOfUse = signal.aborted || (error instanceof CloudError && error.retriable);
    if (!isOfUse) upload.cleanUp = async (cleanup) => disks.delete(disk, cleanup);
    throw error;
  }
  await refuseOther(upload, disk);
  onProgress({ done: 92, total: 100 });
  let id: string;
  try {
    id = await images.create(plan, disk, signal);
  } catch (error) {
    if (!signal.aborted) upload.cleanUp = async (cleanup) => removeFailure(upload, disk, cleanup);
    throw error;
  }
  onProgress({ done: 98, total: 100 });
  await removeDisks(upload, disk.name);
  return id;
}

/**
 * Checks that no other process with the same upload has replaced the disk with an incomplete one.
 *
 * @throws CloudError `conflict`
 */
async function refuseOther({ subject, disks, signal }: ImageUpload, disk: UploadDisk): Promise<void> {
  const now = await disks.get(disk.name, signal);
  if (now?.uniqueId === disk.uniqueId) return;
  throw cloudError('conflict', subject, `another process has replaced disk ${disk.name}`);
}

/** Returns the complete image of the upload. Waits for one that is being created, and deletes one that failed. */
async function settledImage(upload: ImageUpload, disk?: UploadDisk): Promise<StoredImage | undefined> {
  const { plan, images, signal, entry, subject, pollInterval: interval } = upload;
  const timeout = entry['image-import-timeout'];
  let last: StoredImage | undefined;
  const look = async (): Promise<{ readonly image: StoredImage | undefined } | undefined> => {
    const image = await images.find(plan, signal, disk);
    last = image;
    if (image === undefined) return { image };
    if (!isOf(image, entry.name, plan.request.uploadId)) {
      const reason = `${image.id} exists, but it does not belong to this upload; delete or rename it`;
      throw cloudError('conflict', subject, reason);
    }
    if (image.state === 'Succeeded') return { image };
    if (!SETTLING.includes(image.state)) await images.delete(image.id, signal);
    return undefined;
  };
  const onTimeout = (): Error =>
    cloudError('image-timeout', subject, `${last?.id} is still ${last?.state} after ${timeout} s`);
  return (await poll(look, { timeout, interval, signal, onTimeout })).image;
}

/** Returns the disk for the pages: an earlier attempt's disk with the same bytes, else a new one. */
async function openDisk(upload: ImageUpload, name: string, size: number): Promise<UploadDisk> {
  const { plan, disks, signal } = upload;
  const { checksums } = plan.request.file;
  const known = await disks.get(name, signal);
  if (known !== undefined) {
    if (
      isOpen(known) &&
      known.size === size &&
      readImageTags(known.tags)?.checksums?.sha256 === checksums?.sha256
    ) {
      // If another process has just started to create the disk, creating it again waits for it.
      if (known.creation === 'Succeeded') return known;
    } else {
      await disks.delete(known, signal);
    }
  } else if (plan.request.shared !== true) {
    await removeDisks(upload);
  }
  await upload.record(name);
  const created = await disks.create(name, size, plan, signal);
  return created.state === '' ? ((await disks.get(name, signal)) ?? created) : created;
}

/**
 * Returns the disk name for the bytes of the file. The name is unique per attempt if other processes run the same
 * upload, or without checksums.
 */
function diskName({ key, request }: ImagePlan): string {
  const content = request.shared === true ? undefined : request.file.checksums?.sha256;
  return `nodepool-${key}-${(content ?? randomUUID()).slice(0, 8)}`;
}

/**
 * Removes all disks of the upload.
 *
 * @param name name of a disk that a list may not show yet
 */
async function removeDisks({ plan, disks, signal }: ImageUpload, name?: string): Promise<void> {
  const unlisted = name === undefined ? undefined : await disks.get(name, signal);
  if (unlisted !== undefined) await disks.delete(unlisted, signal);
  for (const disk of await disks.list(signal, plan.request.uploadId)) await disks.delete(disk, signal);
}

/**
 * Removes a failed image and its disk. Keeps the disk of an image that Azure is still creating; the next attempt waits
 * for it.
 */
async function removeFailure(
  { plan, images, disks, entry }: ImageUpload,
  disk: UploadDisk,
  signal: AbortSignal,
): Promise<void> {
  const image = await images.find(plan, signal, disk);
  if (image !== undefined && SETTLING.includes(image.state)) return;
  if (image?.state === 'Failed' && isOf(image, entry.name, plan.request.uploadId)) {
    await images.delete(image.id, signal);
  }
  await disks.delete({ name: disk.name, state: 'Unattached' }, signal);
}

function isTimeout(error: unknown): boolean {
  return error instanceof CloudError && error.code === 'image-timeout';
}

/** Returns whether an upload failed for good, but not because another process works on it. */
export function isFinal(error: unknown): boolean {
  if (!(error instanceof CloudError || error instanceof ImageError)) return false;
  return !error.retriable && error.code !== 'conflict';
}
