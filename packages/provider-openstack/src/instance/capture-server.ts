import { type CapturedImage, type CaptureRequest, ImageError } from '@nodepool-builder/image-builder';
import type { GlanceImage } from '../glance-image.ts';
import { unlessAbsent } from '../unless-absent.ts';
import {
  BUILD_ID,
  BUILD_TIME,
  CHECKSUM_PROPERTIES,
  IMAGE_NAME,
  PROVIDER_NAME,
  UPLOAD_ID,
} from '../upload/image-properties.ts';
import { until } from '../upload/poll.ts';
import { CapturedSnapshot } from './captured-snapshot.ts';
import type { InstanceCloud } from './instance-cloud.ts';

/** The image's property with the server that it was made of, for us to know our own by. */
export const CAPTURED_OF = 'nodepool_builder_instance';

/** The property in which Nova says the same. Images of servers that boot from our image inherit all but this. */
const INSTANCE = 'instance_uuid';

/** What Nova hands on from the base image to the snapshot, and is not true of it. */
const INHERITED: readonly string[] = [IMAGE_NAME, BUILD_TIME, ...CHECKSUM_PROPERTIES.keys()];

const WAITING: readonly string[] = ['queued', 'saving'];

/** Whether an image was captured for a builder, and of nothing that was made of such an image. */
export function isCaptured({ properties }: GlanceImage, namePrefix: string): boolean {
  const { [UPLOAD_ID]: uploadId, [CAPTURED_OF]: serverId, [INSTANCE]: instance } = properties;
  return (
    typeof uploadId === 'string' &&
    uploadId.startsWith(namePrefix) &&
    serverId !== undefined &&
    serverId === instance
  );
}

/**
 * Makes an image of a server and waits until it is whole. One that does not become so is removed.
 *
 * @throws ImageError `instance-failed`
 * @throws OpenStackError
 */
export async function captureServer(
  cloud: InstanceCloud,
  serverId: string,
  { imageId }: CaptureRequest,
  signal: AbortSignal,
): Promise<CapturedImage> {
  const { images, compute, namePrefix, provider } = cloud;
  const marks = {
    [PROVIDER_NAME]: provider,
    [BUILD_ID]: imageId,
    [UPLOAD_ID]: `${namePrefix}${serverId}`,
    [CAPTURED_OF]: serverId,
  };
  const whole = new AbortController().signal; // its answer tells what would have to be removed
  const id = await compute.createImage(serverId, imageId, marks, whole);
  try {
    const image = await activeSnapshot(cloud, id, signal);
    const wrong = INHERITED.filter((name) => name in image.properties);
    await images.removeProperties(id, wrong, signal);
    return new CapturedSnapshot(cloud, image);
  } catch (error) {
    await images.delete(id, whole).catch((failure: unknown) => {
      cloud.logger.warn(
        `image ${id} of server ${serverId} is left in cloud ${cloud.name}: ${String(failure)}`,
      );
    });
    throw error;
  }
}

async function activeSnapshot(
  { name, images }: InstanceCloud,
  id: string,
  signal: AbortSignal,
): Promise<GlanceImage> {
  return await until(async () => {
    const image = await images.get(id, signal).catch(unlessAbsent);
    if (image?.status === 'active') return image;
    if (image !== undefined && WAITING.includes(image.status)) return undefined;
    throw new ImageError(
      'instance-failed',
      `cloud ${name}: no image could be made of the instance: image ${id} ${image === undefined ? 'is gone' : `went to ${image.status}`}; see the log of its compute service, and the quota of images`,
    );
  }, signal);
}
