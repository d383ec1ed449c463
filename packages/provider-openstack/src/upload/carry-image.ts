import type { Logger, UploadRequest } from '@nodepool-builder/image-builder';
import { RetryBudget } from '@nodepool-builder/image-builder/module-kit';
import type { GlanceImage } from '../glance-image.ts';
import type { ImageApi, ImageProperties } from '../image-api.ts';
import type { Carrier } from './carry.ts';
import type { FileData, FileDataOptions } from './file-data.ts';
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

/** What it takes to remove what an upload left. */
export type Remains = Pick<ImageUpload, 'images' | 'carrier' | 'signal'>;

/**
 * Carries the file into a new image, and compares what the cloud stored with it.
 *
 * @param create makes the image, with these properties
 */
export async function carryImage(
  upload: ImageUpload,
  file: FileData,
  create: (properties: ImageProperties) => Promise<GlanceImage>,
): Promise<GlanceImage> {
  const { images, carrier, request, properties, timeout, signal } = upload;
  const known = request.file.checksums;
  const first = unprotected({ ...properties, ...(known && checksumProperties(request, known)) });
  const image = await carrier.carry({
    images,
    uploadId: request.uploadId,
    create: () => create(first),
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
export async function complete(
  { images, request, properties, signal }: ImageUpload,
  image: GlanceImage,
  file: FileData,
): Promise<void> {
  const checksums = checksumProperties(request, await file.checksums());
  const missing = missingProperties(image, withoutFormats({ ...properties, ...checksums }));
  if (Object.keys(missing).length > 0) await images.update(image.id, missing, signal);
}

/** @throws OpenStackError `checksum-mismatch` */
export async function verify(
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

/** Removes what a failed upload left. Never hides why it failed. */
export async function cleanUp(
  upload: ImageUpload,
  remove: (remains: Remains) => Promise<void>,
): Promise<void> {
  const { images, logger, request } = upload;
  const signal = AbortSignal.timeout(CLEAN_UP_TIME * 1000);
  try {
    await RetryBudget.without(() => remove({ ...upload, signal }));
  } catch (error) {
    logger.warn(
      `cloud ${images.cloud}: what the failed upload of image ${request.imageId} left cannot be removed: ${String(error)}; remove the images with ${UPLOAD_ID}=${request.uploadId}`,
      { error },
    );
  }
}
