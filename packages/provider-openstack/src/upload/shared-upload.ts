import { createHash } from 'node:crypto';
import { CloudError, IMAGE_TAGS, poll, unlessAbsent } from '@nodepool-builder/image-builder/plugin';
import { type GlanceImage, hasChanged, isRunning, reportedDigests } from '../glance-image.ts';
import type { ImageProperties } from '../image-api.ts';
import { withFile } from './file-data.ts';
import { MD5 } from './image-properties.ts';
import { cleanUp, complete, deactivated, type ImageUpload, transferImage } from './image-upload.ts';
import { FinalError } from './retry.ts';
import { isSameKind } from './verify-image.ts';

/** Seconds without a change after which the upload of another process counts as interrupted. */
export interface StandstillLimits {
  /** Limit without data: the other process is between two requests, or has died. */
  readonly empty: number;
  /** Limit while the cloud receives or stores data. Most clouds notice when the sender disconnects. */
  readonly storing: number;
}

/** An upload on which other processes may also work. */
export interface SharedUpload extends ImageUpload {
  readonly standstill: StandstillLimits;
  /** Project of the credentials; undefined in a cloud without projects. */
  readonly projectId: string | undefined;
}

/** Max deleted images of one upload. */
const MAX_TURNS = 1000;

/**
 * Uploads a file while other processes may do the same. The result is one image, and all processes get its id.
 *
 * The image id is derived from the upload id, so only one process can create the image. The others wait until it is
 * complete. They try the next id if the image is deleted, either because its upload failed, or because it made no
 * progress and one of them deleted it.
 */
export async function uploadShared(upload: SharedUpload): Promise<string> {
  const { images, request, projectId, signal } = upload;
  const found = await images.list({ [IMAGE_TAGS.uploadId]: request.uploadId }, signal);
  const finished = found.find((image) => isComplete(upload, image));
  if (finished !== undefined) return finished.id;
  for (let turn = 0; turn < MAX_TURNS; turn += 1) {
    const id = sharedImageId(`${projectId}/${request.uploadId}`, turn);
    if ((await createShared(upload, id)) || (await waitUntilComplete(upload, id))) return id;
  }
  throw new FinalError(
    new CloudError(
      'conflict',
      `cloud ${images.cloud} accepts none of the ids for image ${request.imageId}; upload it under another name`,
    ),
  );
}

/** Returns false if the id is or was in use; its image is not changed. */
async function createShared(upload: SharedUpload, id: string): Promise<boolean> {
  const { images, request, signal } = upload;
  let isOurs = false;
  const create = async (properties: ImageProperties): Promise<GlanceImage> => {
    const image = await images.create({ ...properties, id }, signal);
    isOurs = true;
    return image;
  };
  return await withFile(request.file, upload, async (file) => {
    try {
      await complete(upload, await transferImage(upload, file, create), file);
      return true;
    } catch (error) {
      if (isOurs) await cleanUp(upload, (cleanup) => images.delete(id, cleanup.signal));
      else if (error instanceof CloudError && error.code === 'conflict') return false;
      throw error;
    }
  });
}

/** Limit for each status. An image in any other status does not become complete. */
const LIMITS: Readonly<Record<string, keyof StandstillLimits>> = {
  queued: 'empty',
  killed: 'empty',
  saving: 'storing',
  uploading: 'storing',
  importing: 'storing',
  active: 'storing', // An active image here has a wrong digest, which its own process will notice.
};

/** Returns whether an image is active and intact. Uses the digest that its process announced, as in `verifyImage`. */
function isComplete({ request }: SharedUpload, image: GlanceImage): boolean {
  const { status, [MD5]: announced } = image;
  const { md5 = announced } = reportedDigests(image);
  return status === 'active' && (md5 === (announced ?? md5) || !isSameKind(image, request.file));
}

/**
 * Waits until another process has completed the image. Deletes an image without progress.
 *
 * @returns false if the image is gone
 * @throws CloudError `conflict` if it was deactivated
 */
async function waitUntilComplete(upload: SharedUpload, id: string): Promise<boolean> {
  const { images, logger, signal } = upload;
  let seen: GlanceImage | undefined;
  let since = 0;
  const check = async (): Promise<boolean | undefined> => {
    const image = await ownImage(upload, id);
    if (image === undefined) return false;
    if (isComplete(upload, image)) return true;
    if (seen === undefined) logger.warn(`another process is uploading image ${id}`);
    if (seen === undefined || hasChanged(seen, image)) {
      since = performance.now();
      seen = image;
    } else if (performance.now() - since > (await limitFor(upload, image)) * 1000) {
      logger.warn(
        `image ${id} has been ${image.status} for too long: its upload was interrupted; starting over`,
      );
      await images.delete(id, signal);
      return false;
    }
    return undefined;
  };
  return await poll(check, { signal });
}

/**
 * Returns the image if this project owns it. Anybody who knows the file can publish an image with this id and these
 * properties.
 */
async function ownImage(
  { images, projectId, signal }: SharedUpload,
  id: string,
): Promise<GlanceImage | undefined> {
  const image = await images.get(id, signal).catch(unlessAbsent);
  return projectId === undefined || image?.owner === projectId ? image : undefined;
}

/** Returns the standstill limit of an image, in seconds. */
async function limitFor(
  { images, method, standstill, signal }: SharedUpload,
  { id, status }: GlanceImage,
): Promise<number> {
  const kind = LIMITS[status];
  if (kind === undefined) {
    if (status === 'deactivated') throw deactivated(images.cloud, id);
    throw new CloudError(
      'conflict',
      `cloud ${images.cloud}: image ${id} of this upload is ${status}; delete it to upload it again`,
    );
  }
  // The image's status does not change before an import starts.
  const isImporting = method.imports && (await images.imageTasks(id, signal)).some(isRunning);
  return standstill[isImporting ? 'storing' : kind];
}

/** Our namespace for name-based UUIDs, an arbitrary value (RFC 9562, 6.6). */
const NAMESPACE = Buffer.from('6f4c1d0e8f2b4b7e9a55c2d1e7a90b3f', 'hex');

/**
 * Computes the image id of a shared upload: a name-based UUID (RFC 9562, version 5).
 *
 * @param upload unique in the cloud, because all projects share the ids
 * @param turn number of earlier images of this upload: Glance never accepts the id of a deleted image again
 */
export function sharedImageId(upload: string, turn: number): string {
  const digest = createHash('sha1').update(NAMESPACE).update(`${upload}/${turn}`).digest();
  digest.writeUInt8((digest.readUInt8(6) & 0x0f) | 0x50, 6);
  digest.writeUInt8((digest.readUInt8(8) & 0x3f) | 0x80, 8);
  return digest.toString('hex', 0, 16).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}
