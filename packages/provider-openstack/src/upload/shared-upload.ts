import { createHash } from 'node:crypto';
import type { GlanceImage } from '../glance-image.ts';
import type { ImageProperties } from '../image-api.ts';
import { OpenStackError } from '../openstack-error.ts';
import { carryImage, cleanUp, complete } from './carry-image.ts';
import { asDiskError, FileData } from './file-data.ts';
import { UPLOAD_ID } from './image-properties.ts';
import { becomesWhole, isWhole, type SharedUpload } from './others-image.ts';
import { FinalFailure } from './retry.ts';

/** How many images of one upload may have been deleted. */
const MAX_TURNS = 1000;

/**
 * Brings a file into a cloud while other processes may do the same: one image comes of it, and all get its id.
 *
 * The image's id is derived from the upload's, so that only one process can make it; the others wait until it is
 * whole. They go on to the next id when it is deleted: because its upload failed, or because nothing moved for so long
 * that one of them took it away.
 */
export async function uploadShared(upload: SharedUpload): Promise<string> {
  const { images, request, projectId, signal } = upload;
  const there = await images.list({ [UPLOAD_ID]: request.uploadId }, signal);
  const whole = there.find((image) => isWhole(upload, image));
  if (whole !== undefined) return whole.id;
  for (let turn = 0; turn < MAX_TURNS; turn += 1) {
    const id = sharedImageId(`${projectId}/${request.uploadId}`, turn);
    if ((await makeImage(upload, id)) || (await becomesWhole(upload, id))) return id;
  }
  throw new FinalFailure(
    new OpenStackError(
      'conflict',
      `cloud ${images.cloud} takes none of the ids for image ${request.imageId}; upload it under another name`,
    ),
  );
}

/** Returns false if the id is taken, or was: then it is not touched. */
async function makeImage(upload: SharedUpload, id: string): Promise<boolean> {
  const { images, request, signal } = upload;
  let isOurs = false;
  const create = async (properties: ImageProperties): Promise<GlanceImage> => {
    const image = await images.create({ ...properties, id }, signal);
    isOurs = true;
    return image;
  };
  const file = await FileData.open(request.file, upload);
  try {
    await complete(upload, await carryImage(upload, file, create), file);
    return true;
  } catch (error) {
    if (isOurs) await cleanUp(upload, (remains) => images.delete(id, remains.signal));
    else if (error instanceof OpenStackError && error.code === 'conflict') return false;
    throw asDiskError(error);
  } finally {
    await file.close();
  }
}

/** Of no meaning but for being ours (RFC 9562, 6.6). */
const NAMESPACE = Buffer.from('6f4c1d0e8f2b4b7e9a55c2d1e7a90b3f', 'hex');

/**
 * The id that an image of a shared upload is made with: a UUID by name (RFC 9562, version 5).
 *
 * @param upload names the upload in all of the cloud, for all projects share the ids
 * @param turn counts the images that this upload had before: Glance never takes the id of a deleted one again
 */
export function sharedImageId(upload: string, turn: number): string {
  const digest = createHash('sha1').update(NAMESPACE).update(`${upload}/${turn}`).digest();
  digest.writeUInt8((digest.readUInt8(6) & 0x0f) | 0x50, 6);
  digest.writeUInt8((digest.readUInt8(8) & 0x3f) | 0x80, 8);
  return digest.toString('hex', 0, 16).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}
