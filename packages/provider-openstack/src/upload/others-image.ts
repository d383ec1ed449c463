import type { GlanceImage } from '../glance-image.ts';
import { OpenStackError } from '../openstack-error.ts';
import { unlessAbsent } from '../unless-absent.ts';
import { isUnderWay } from './active-image.ts';
import type { ImageUpload } from './carry-image.ts';
import { MD5 } from './image-properties.ts';
import { until } from './poll.ts';

/** Seconds that an image of another process may stay as it is before its upload counts as broken off. */
export interface StandstillLimits {
  /** While no data comes: the other is between two requests, or is gone. */
  readonly empty: number;
  /** While the cloud takes or stores data: most notice themselves that nobody sends any more. */
  readonly storing: number;
}

/** An upload that other processes may be at, too. */
export interface SharedUpload extends ImageUpload {
  readonly standstill: StandstillLimits;
  /** Of the credentials; undefined where there are no projects. */
  readonly projectId: string | undefined;
}

/** The limit that holds for a status. An image in any other one will not become whole by waiting. */
const LIMITS: Readonly<Record<string, keyof StandstillLimits>> = {
  queued: 'empty',
  killed: 'empty',
  saving: 'storing',
  uploading: 'storing',
  importing: 'storing',
  active: 'storing', // with a wrong digest: who made it will find out
};

/** Whether an image is active, and has the digest that its maker gave it beforehand. */
export function isWhole({ carrier }: SharedUpload, { status, checksum, properties }: GlanceImage): boolean {
  const wanted = properties[MD5] ?? checksum;
  return status === 'active' && (carrier.convertible || checksum === undefined || checksum === wanted);
}

/**
 * Waits until the image that another process makes is whole. One that does not move on is removed.
 *
 * @returns false if it is gone
 * @throws OpenStackError `conflict` if somebody withdrew it
 */
export async function becomesWhole(upload: SharedUpload, id: string): Promise<boolean> {
  const { images, logger, signal } = upload;
  let seen: GlanceImage | undefined;
  let since = 0;
  return await until(async () => {
    const image = await imageIfThere(upload, id);
    if (image === undefined) return false;
    if (isWhole(upload, image)) return true;
    if (seen === undefined) logger.warn(`image ${id} is on its way already: another process uploads it`);
    if (seen?.status !== image.status || seen.updatedAt.getTime() !== image.updatedAt.getTime()) {
      since = performance.now();
      seen = image;
    } else if (performance.now() - since > (await limitFor(upload, image)) * 1000) {
      logger.warn(
        `image ${id} has been ${image.status} for too long: its upload broke off, and is begun anew`,
      );
      await images.delete(id, signal);
      return false;
    }
    return undefined;
  }, signal);
}

/** Anybody who knows the file may publish an image with the id, and its properties: it must not be taken. */
async function imageIfThere(
  { images, projectId, signal }: SharedUpload,
  id: string,
): Promise<GlanceImage | undefined> {
  const image = await images.get(id, signal).catch(unlessAbsent);
  return projectId === undefined || image?.properties.owner === projectId ? image : undefined;
}

/** Seconds. */
async function limitFor(
  { images, carrier, standstill, signal }: SharedUpload,
  { id, status }: GlanceImage,
): Promise<number> {
  const kind = LIMITS[status];
  if (kind === undefined) {
    throw new OpenStackError(
      'conflict',
      `cloud ${images.cloud}: image ${id} of this upload is ${status}; reactivate it, or delete it to have it made anew`,
    );
  }
  // An import that the cloud has not begun yet leaves the image as it was.
  const isImporting = carrier.convertible && (await images.imageTasks(id, signal)).some(isUnderWay);
  return standstill[isImporting ? 'storing' : kind];
}
