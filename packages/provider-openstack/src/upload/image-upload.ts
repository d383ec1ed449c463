import type { Logger, UploadRequest } from '@nodepool-builder/image-builder';
import { RetryBudget } from '@nodepool-builder/image-builder/internal';
import { CloudError, IMAGE_TAGS } from '@nodepool-builder/image-builder/plugin';
import type { GlanceImage } from '../glance-image.ts';
import type { ImageApi, ImageProperties } from '../image-api.ts';
import { type FileData, type FileDataOptions, withFile } from './file-data.ts';
import { checksumProperties, missingProperties, unprotected, withoutFormats } from './image-properties.ts';
import { FinalError } from './retry.ts';
import type { UploadMethod } from './upload-method.ts';
import { verifyImage } from './verify-image.ts';

/** Time limit for the cleanup after a failure, in milliseconds. The upload's own signal may have aborted. */
const CLEANUP_TIME = 120_000;

/** Seconds for which requests of the cleanup are retried. The upload job does not complete before the cleanup. */
const CLEANUP_RETRY_LIMIT = 8;

/** One upload to one cloud. */
export interface ImageUpload extends FileDataOptions {
  readonly images: ImageApi;
  readonly method: UploadMethod;
  readonly request: UploadRequest;
  /** Final properties of the image, without the digests. */
  readonly properties: ImageProperties;
  /** Max seconds from the last byte until the image is active. */
  readonly timeout: number;
  readonly logger: Logger;
}

/** The parts of an upload that its cleanup needs. */
export type Cleanup = Pick<ImageUpload, 'images' | 'method' | 'signal'>;

/**
 * Makes one attempt to upload a file. Leaves one complete image, or none. Returns a complete image of an earlier
 * attempt, and removes an incomplete one.
 *
 * @param attempt starts at 1
 * @returns the image
 * @throws FinalError for a conflict before the image was created
 */
export async function uploadImage(upload: ImageUpload, attempt: number): Promise<GlanceImage> {
  const { images, method, request, signal } = upload;
  let isCreated = false;
  const create = async (properties: ImageProperties): Promise<GlanceImage> => {
    const created = await images.create(properties, signal);
    isCreated = true;
    return created;
  };
  return await withFile(request.file, upload, async (file) => {
    const found = await images.list({ [IMAGE_TAGS.uploadId]: request.uploadId }, signal);
    const blocked = found.find(({ status }) => status === 'deactivated');
    if (blocked !== undefined) throw new FinalError(deactivated(images.cloud, blocked.id));
    try {
      const image = (await intactImage(upload, found, file)) ?? (await transferImage(upload, file, create));
      await complete(upload, image, file);
      // An earlier request may take effect only now, long after its response was lost.
      if (attempt > 1) await removeUpload(upload, request.uploadId, image.id);
      else await method.clear?.(images, request.uploadId, signal);
      return image;
    } catch (error) {
      await cleanUp(upload, (cleanup) => removeUpload(cleanup, request.uploadId));
      const isConflict = error instanceof CloudError && error.code === 'conflict';
      throw isConflict && !isCreated ? new FinalError(error) : error;
    }
  });
}

/**
 * Uploads the file into a new image and verifies the stored data.
 *
 * @param create creates the image with these properties
 */
export async function transferImage(
  upload: ImageUpload,
  file: FileData,
  create: (properties: ImageProperties) => Promise<GlanceImage>,
): Promise<GlanceImage> {
  const { images, method, request, properties, timeout, signal } = upload;
  const known = request.file.checksums;
  const first = unprotected({ ...properties, ...(known && checksumProperties(request, known)) });
  const { uploadId } = request;
  const image = await method.run({ images, uploadId, create: () => create(first), file, timeout, signal });
  await verifyImage(upload, image, file);
  return image;
}

/** Sets the properties that were unknown or forbidden when the image was created. */
export async function complete(
  { images, request, properties, signal }: ImageUpload,
  image: GlanceImage,
  file: FileData,
): Promise<void> {
  const checksums = checksumProperties(request, await file.checksums());
  const missing = missingProperties(image, withoutFormats({ ...properties, ...checksums }));
  if (Object.keys(missing).length > 0) await images.update(image.id, missing, signal);
}

/** Cleans up after a failed upload. Logs errors of the cleanup instead of throwing them. */
export async function cleanUp(
  upload: ImageUpload,
  remove: (cleanup: Cleanup) => Promise<void>,
): Promise<void> {
  const { images, logger, request } = upload;
  const signal = AbortSignal.timeout(CLEANUP_TIME);
  try {
    await new RetryBudget(CLEANUP_RETRY_LIMIT).run(() => remove({ ...upload, signal }));
  } catch (error) {
    logger.warn(
      `cloud ${images.cloud}: the cleanup after the failed upload of image ${request.imageId} failed: ${String(error)}; remove the images with ${IMAGE_TAGS.uploadId}=${request.uploadId}`,
      { error },
    );
  }
}

/** Removes everything of an upload from the cloud except one image. */
export async function removeUpload(
  { images, method, signal }: Cleanup,
  uploadId: string,
  kept?: string,
): Promise<void> {
  const found = await images.list({ [IMAGE_TAGS.uploadId]: uploadId }, signal);
  for (const { id } of found) if (id !== kept) await images.delete(id, signal);
  await method.clear?.(images, uploadId, signal);
}

/**
 * Creates the error for an image of this upload that an administrator has deactivated. Such an image is neither used
 * nor replaced.
 */
export function deactivated(cloud: string, id: string): CloudError {
  return new CloudError(
    'conflict',
    `cloud ${cloud}: image ${id} of this upload is deactivated; reactivate it, or delete it to upload it again`,
  );
}

/** Returns the first intact image and removes the others. */
async function intactImage(
  upload: ImageUpload,
  found: readonly GlanceImage[],
  file: FileData,
): Promise<GlanceImage | undefined> {
  let intact: GlanceImage | undefined;
  for (const image of found) {
    if (intact === undefined && (await isIntact(upload, image, file))) intact = image;
    else await upload.images.delete(image.id, upload.signal);
  }
  return intact;
}

async function isIntact(upload: ImageUpload, image: GlanceImage, file: FileData): Promise<boolean> {
  if (image.status !== 'active') return false;
  try {
    await verifyImage(upload, image, file);
    return true;
  } catch (error) {
    if (error instanceof CloudError && error.code === 'checksum-mismatch') return false;
    throw error;
  }
}
