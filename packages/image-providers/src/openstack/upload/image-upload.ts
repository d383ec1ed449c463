import type { Logger, UploadRequest } from '@nodepool-builder/image-builder';
import type { GlanceImage } from '../glance-image.ts';
import type { ImageApi, ImageProperties } from '../image-api.ts';
import { OpenStackError } from '../openstack-error.ts';
import type { Carrier } from './carry.ts';
import { asDiskError, FileData, type FileDataOptions } from './file-data.ts';
import {
  checksumProperties,
  missingProperties,
  UPLOAD_ID,
  unprotected,
  withoutFormats,
} from './image-properties.ts';
import { verifyImage } from './verify-image.ts';

/** Seconds for removing what a failed upload left: its own signal may have aborted. */
const CLEAN_UP_TIME = 120;

/** One upload to one cloud. */
export interface ImageUpload extends FileDataOptions {
  readonly images: ImageApi;
  readonly carrier: Carrier;
  readonly request: UploadRequest;
  /** All that the image is to have in the end, but for digests. */
  readonly properties: ImageProperties;
  /** Seconds from the last byte until the image is active. */
  readonly timeout: number;
  readonly logger: Logger;
}

/**
 * Tries once to bring a file into a cloud: leaves one image that is whole, or none. What an earlier try of the same
 * upload left is the result if it is whole, else it is removed.
 *
 * @param attempt which try this is, from 1
 * @returns the image's id
 */
export async function uploadImage(upload: ImageUpload, attempt: number): Promise<string> {
  const { images, carrier, request, signal } = upload;
  const file = await FileData.open(request.file, upload);
  try {
    const left = await images.list({ [UPLOAD_ID]: request.uploadId }, signal);
    try {
      const image = (await firstWhole(upload, left, file)) ?? (await carry(upload, file));
      await complete(upload, image, file);
      // The answer to an earlier try's request may have been lost for so long that its image came only now.
      if (attempt > 1) await removeUpload(upload, request.uploadId, image.id);
      else await carrier.clear?.(images, request.uploadId, signal);
      return image.id;
    } catch (error) {
      await cleanUp(upload);
      throw error;
    }
  } catch (error) {
    throw asDiskError(error);
  } finally {
    await file.close();
  }
}

/** What {@link removeUpload} needs. */
export type Remains = Pick<ImageUpload, 'images' | 'carrier' | 'signal'>;

/** Removes everything in the cloud that belongs to an upload, but for one image. */
export async function removeUpload(
  { images, carrier, signal }: Remains,
  uploadId: string,
  kept?: string,
): Promise<void> {
  const left = await images.list({ [UPLOAD_ID]: uploadId }, signal);
  for (const { id } of left) if (id !== kept) await images.delete(id, signal);
  await carrier.clear?.(images, uploadId, signal);
}

async function carry(upload: ImageUpload, file: FileData): Promise<GlanceImage> {
  const { images, carrier, request, properties, timeout, signal } = upload;
  const known = request.file.checksums;
  const image = await carrier.carry({
    images,
    uploadId: request.uploadId,
    properties: unprotected({ ...properties, ...(known && checksumProperties(request, known)) }),
    path: request.file.path,
    data: file.data,
    checksums: () => file.checksums(),
    timeout,
    signal,
  });
  await verify(upload, image, file);
  return image;
}

/** Sets what was not known, or not allowed, when the image was made. */
async function complete(
  { images, request, properties, signal }: ImageUpload,
  image: GlanceImage,
  file: FileData,
): Promise<void> {
  const checksums = checksumProperties(request, await file.checksums());
  const missing = missingProperties(image, withoutFormats({ ...properties, ...checksums }));
  if (Object.keys(missing).length > 0) await images.update(image.id, missing, signal);
}

/** The first whole one of these images; the others are removed. */
async function firstWhole(
  upload: ImageUpload,
  left: readonly GlanceImage[],
  file: FileData,
): Promise<GlanceImage | undefined> {
  let whole: GlanceImage | undefined;
  for (const image of left) {
    if (whole === undefined && (await isWhole(upload, image, file))) whole = image;
    else await upload.images.delete(image.id, upload.signal);
  }
  return whole;
}

async function isWhole(upload: ImageUpload, image: GlanceImage, file: FileData): Promise<boolean> {
  if (image.status !== 'active') return false;
  try {
    await verify(upload, image, file);
    return true;
  } catch (error) {
    if (error instanceof OpenStackError && error.code === 'checksum-mismatch') return false;
    throw error;
  }
}

async function verify(
  { images, carrier, request, signal }: ImageUpload,
  image: GlanceImage,
  file: FileData,
): Promise<void> {
  await verifyImage(image, {
    cloud: images.cloud,
    file: request.file,
    checksums: () => file.checksums(),
    convertible: carrier.convertible,
    signal,
  });
}

/** Never hides why the upload failed. */
async function cleanUp(upload: ImageUpload): Promise<void> {
  const { images, logger, request } = upload;
  const signal = AbortSignal.timeout(CLEAN_UP_TIME * 1000);
  try {
    await removeUpload({ ...upload, signal }, request.uploadId);
  } catch (error) {
    logger.warn(
      `cloud ${images.cloud}: what the failed upload of image ${request.imageId} left cannot be removed: ${String(error)}; remove the images with ${UPLOAD_ID}=${request.uploadId}`,
      { error },
    );
  }
}
