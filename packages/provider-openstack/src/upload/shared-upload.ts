import type { GlanceImage } from '../glance-image.ts';
import type { ImageProperties } from '../image-api.ts';
import { OpenStackError } from '../openstack-error.ts';
import { carryImage, cleanUp, complete } from './carry-image.ts';
import { asDiskError, FileData } from './file-data.ts';
import { UPLOAD_ID } from './image-properties.ts';
import { becomesWhole, isWhole, type SharedUpload } from './others-image.ts';
import { FinalFailure } from './retry.ts';
import { sharedImageId } from './shared-image-id.ts';

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
