import {
  type CaptureRequest,
  ImageError,
  type ImageFormat,
  type OperationOptions,
  type StoredCapture,
} from '@nodepool-builder/image-builder';
import { isImageFormat, withAbort } from '@nodepool-builder/image-builder/internal';
import { IMAGE_TAGS, poll, unlessAbsent } from '@nodepool-builder/image-builder/plugin';
import { createdAt, type GlanceImage } from '../glance-image.ts';
import type { ImageApi, ImageProperties } from '../image-api.ts';
import { saveImage } from '../image-download.ts';
import { CHECKSUM_PROPERTIES, missingProperties, withoutFormats } from '../upload/image-properties.ts';
import { DEFAULT_RETRIES } from '../upload/retry.ts';
import type { InstanceCloud } from './instance-cloud.ts';

/** Image property with the id of the captured server. */
const CAPTURED_OF = 'nodepool_builder_instance';

/** Nova's own property with the server id. A snapshot inherits all properties of our base image except this one. */
const INSTANCE = 'instance_uuid';

/** Properties that a snapshot inherits from the base image although they do not apply to it. */
const INHERITED: readonly string[] = [
  IMAGE_TAGS.imageName,
  IMAGE_TAGS.builtAt,
  ...CHECKSUM_PROPERTIES.keys(),
];

const WAITING: readonly string[] = ['queued', 'saving'];

/** Lists captured images of our instances, even incomplete ones, except those that belong to an upload. */
export async function findCaptures(cloud: InstanceCloud, signal: AbortSignal): Promise<CapturedSnapshot[]> {
  const images = await cloud.images.list({ [IMAGE_TAGS.provider]: cloud.provider }, signal);
  return images
    .filter((image) => isCaptured(image, cloud.namePrefix))
    .map((image) => new CapturedSnapshot(cloud, image));
}

/**
 * Returns whether an image was captured for a builder. False for a snapshot of a server that booted from a captured
 * image.
 */
function isCaptured(image: GlanceImage, namePrefix: string): boolean {
  const { [IMAGE_TAGS.uploadId]: uploadId, [CAPTURED_OF]: serverId, [INSTANCE]: instance } = image;
  return (
    typeof uploadId === 'string' &&
    uploadId.startsWith(namePrefix) &&
    serverId !== undefined &&
    serverId === instance
  );
}

/**
 * Tags a snapshot as the image of an upload.
 *
 * @returns false if the snapshot is missing or belongs to another upload
 */
export async function claimSnapshot(
  images: ImageApi,
  id: string,
  properties: ImageProperties,
  signal: AbortSignal,
): Promise<boolean> {
  const image = await images.get(id, signal).catch(unlessAbsent);
  if (image?.status !== 'active') return false;
  if (image[IMAGE_TAGS.uploadId] !== properties[IMAGE_TAGS.uploadId] && !isUnclaimed(image)) return false;
  const missing = missingProperties(image, withoutFormats(properties));
  if (Object.keys(missing).length === 0) return true;
  const update = images.update(id, missing, signal).then(() => true);
  return (await update.catch(unlessAbsent)) ?? false;
}

/** Returns whether no upload has claimed a snapshot: its initial upload id ends with the server id. */
function isUnclaimed({ [IMAGE_TAGS.uploadId]: uploadId, [CAPTURED_OF]: serverId }: GlanceImage): boolean {
  return typeof uploadId === 'string' && typeof serverId === 'string' && uploadId.endsWith(serverId);
}

/**
 * Creates an image from a server and waits until it is active. Removes the image after a failure.
 *
 * @throws ImageError `instance-failed`
 * @throws CloudError
 */
export async function captureServer(
  cloud: InstanceCloud,
  serverId: string,
  { imageId }: CaptureRequest,
  signal: AbortSignal,
): Promise<CapturedSnapshot> {
  const { images, compute, namePrefix, provider } = cloud;
  const properties = {
    [IMAGE_TAGS.provider]: provider,
    [IMAGE_TAGS.imageId]: imageId,
    [IMAGE_TAGS.uploadId]: `${namePrefix}${serverId}`,
    [CAPTURED_OF]: serverId,
  };
  const unaborted = new AbortController().signal; // The cleanup needs the id in the response.
  const id = await compute.createImage(serverId, imageId, properties, unaborted);
  try {
    const image = await activeSnapshot(cloud, id, signal);
    const wrong = INHERITED.filter((name) => name in image);
    await images.removeProperties(id, wrong, signal);
    return new CapturedSnapshot(cloud, image);
  } catch (error) {
    await images.delete(id, unaborted).catch((failure: unknown) => {
      cloud.logger.warn(
        `cloud ${images.cloud}: image ${id} of server ${serverId} could not be deleted: ${String(failure)}`,
      );
    });
    throw error;
  }
}

async function activeSnapshot(
  { images }: InstanceCloud,
  id: string,
  signal: AbortSignal,
): Promise<GlanceImage> {
  const check = async (): Promise<GlanceImage | undefined> => {
    const image = await images.get(id, signal).catch(unlessAbsent);
    if (image?.status === 'active') return image;
    if (image !== undefined && WAITING.includes(image.status)) return undefined;
    throw new ImageError(
      'instance-failed',
      `cloud ${images.cloud}: capture of the instance failed: image ${id} ${image === undefined ? 'is gone' : `went to ${image.status}`}; check the compute service's log and the image quota`,
    );
  };
  return await poll(check, { signal });
}

/** A Glance image that Nova created from a server. */
export class CapturedSnapshot implements StoredCapture {
  readonly externalId: string;
  readonly imageId: string;
  readonly capturedAt: Date;
  readonly formats: readonly ImageFormat[];
  readonly #cloud: InstanceCloud;
  readonly #image: GlanceImage;

  constructor(cloud: InstanceCloud, image: GlanceImage) {
    this.externalId = image.id;
    this.imageId = String(image[IMAGE_TAGS.imageId]);
    this.capturedAt = createdAt(image);
    this.formats = isImageFormat(image.disk_format) ? [image.disk_format] : [];
    this.#cloud = cloud;
    this.#image = image;
  }

  /** @throws CloudError */
  async save(format: ImageFormat, path: string, options: OperationOptions = {}): Promise<void> {
    const { retry: retries = DEFAULT_RETRIES, logger, images } = this.#cloud;
    if (!this.formats.includes(format)) {
      throw new ImageError(
        'format-unavailable',
        `image ${this.externalId} of cloud ${images.cloud} is ${this.#image.disk_format} and cannot be saved as ${format}; convert it`,
      );
    }
    await saveImage({ images, image: this.#image, path, logger, retries, remedy: 'build it again' }, options);
  }

  /** @throws CloudError */
  async discard(options: OperationOptions = {}): Promise<void> {
    await withAbort(options, (signal) => this.#cloud.images.delete(this.externalId, signal));
  }
}
