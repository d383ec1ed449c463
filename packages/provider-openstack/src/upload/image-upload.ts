import type { GlanceImage } from '../glance-image.ts';
import type { ImageProperties } from '../image-api.ts';
import { OpenStackError } from '../openstack-error.ts';
import { carryImage, cleanUp, complete, type ImageUpload, type Remains, verify } from './carry-image.ts';
import { asDiskError, FileData } from './file-data.ts';
import { UPLOAD_ID } from './image-properties.ts';
import { FinalFailure } from './retry.ts';

/**
 * Tries once to bring a file into a cloud: leaves one image that is whole, or none. What an earlier try of the same
 * upload left is the result if it is whole, else it is removed.
 *
 * @param attempt which try this is, from 1
 * @returns the image's id
 * @throws FinalFailure for a conflict that is not about the image of this try
 */
export async function uploadImage(upload: ImageUpload, attempt: number): Promise<string> {
  const { images, carrier, request, signal } = upload;
  const file = await FileData.open(request.file, upload);
  let hasImage = false;
  try {
    const left = await images.list({ [UPLOAD_ID]: request.uploadId }, signal);
    try {
      const create = async (properties: ImageProperties): Promise<GlanceImage> => {
        const created = await images.create(properties, signal);
        hasImage = true;
        return created;
      };
      const image = (await firstWhole(upload, left, file)) ?? (await carryImage(upload, file, create));
      await complete(upload, image, file);
      // The answer to an earlier try's request may have been lost for so long that its image came only now.
      if (attempt > 1) await removeUpload(upload, request.uploadId, image.id);
      else await carrier.clear?.(images, request.uploadId, signal);
      return image.id;
    } catch (error) {
      await cleanUp(upload, (remains) => removeUpload(remains, request.uploadId));
      throw error;
    }
  } catch (error) {
    const isConflict = error instanceof OpenStackError && error.code === 'conflict';
    throw isConflict && !hasImage ? new FinalFailure(error) : asDiskError(error);
  } finally {
    await file.close();
  }
}

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
