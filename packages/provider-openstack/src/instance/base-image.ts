import { ImageError } from '@nodepool-builder/image-builder';
import type { GlanceImage } from '../glance-image.ts';
import type { ImageApi } from '../image-api.ts';
import { OpenStackError } from '../openstack-error.ts';

/**
 * The image of an id, or the newest active one of a name that the project may use.
 *
 * @throws ImageError `image-not-found`
 */
export async function baseImage(
  images: ImageApi,
  nameOrId: string,
  signal: AbortSignal,
): Promise<GlanceImage> {
  const active = await byId(images, nameOrId, signal);
  const named =
    active === undefined ? await images.find({ name: nameOrId, status: 'active' }, signal) : [active];
  const [newest] = named
    .filter(({ properties }) => properties.os_hidden !== true)
    .toSorted((one, other) => other.createdAt.getTime() - one.createdAt.getTime());
  if (newest !== undefined) return newest;
  throw new ImageError(
    'image-not-found',
    `cloud ${images.cloud}: no active image has the name or the id "${nameOrId}"; correct the base image, or upload it`,
  );
}

/** Glance says not-found of a name, and bad-request of what can be no id. */
async function byId(images: ImageApi, id: string, signal: AbortSignal): Promise<GlanceImage | undefined> {
  try {
    const image = await images.get(id, signal);
    return image.status === 'active' ? image : undefined;
  } catch (error) {
    if (error instanceof OpenStackError && ABSENT.includes(error.code)) return undefined;
    throw error;
  }
}

const ABSENT: readonly string[] = ['not-found', 'bad-request'];
