import type { GlanceImage } from '../glance-image.ts';
import type { ImageApi } from '../image-api.ts';
import { OpenStackError } from '../openstack-error.ts';
import { poll } from './poll.ts';

/** How an image's data came: a file that was put has been taken when the wait begins, an import may yet begin. */
export type Arrival = 'file' | 'import';

/** What {@link activeImage} waits for. */
export interface ActiveImageOptions {
  readonly arrival: Arrival;
  /** Seconds. */
  readonly timeout: number;
  readonly signal: AbortSignal;
}

/** What the statuses mean that are no end, by how the data comes. Any other but `active` means that it failed. */
const PENDING: Readonly<Record<Arrival, readonly string[]>> = {
  file: ['saving', 'importing'],
  import: ['queued', 'saving', 'uploading', 'importing'],
};

/**
 * Waits until an image is active. Glance v2 has no status for a failure: the image goes back to the one that it had.
 *
 * @throws OpenStackError `image-failed`, `image-timeout`
 */
export async function activeImage(
  images: ImageApi,
  id: string,
  { arrival, timeout, signal }: ActiveImageOptions,
): Promise<GlanceImage> {
  let last = '';
  let importing = false;
  const look = async (): Promise<GlanceImage | undefined> => {
    const image = await images.get(id, signal).catch((error: unknown) => {
      if (error instanceof OpenStackError && error.code === 'not-found')
        throw failed(images, id, 'is gone', error);
      throw error;
    });
    last = image.status;
    if (last === 'active') return image;
    importing ||= last === 'importing';
    const fellBack = importing && last !== 'importing' && last !== 'saving';
    if (fellBack || importFailed(image) || !PENDING[arrival].includes(last))
      throw failed(images, id, `went to ${last} instead of active`);
    return undefined;
  };
  const onTimeout = (): Error =>
    new OpenStackError(
      'image-timeout',
      `cloud ${images.cloud}: image ${id} is ${last} and not active after ${timeout} s; look at the cloud's image service, or raise upload-timeout`,
    );
  return await poll(look, { timeout, signal, onTimeout });
}

/** Stores whose import failed are listed in the image. */
function importFailed({ properties }: GlanceImage): boolean {
  const stores = properties.os_glance_failed_import;
  return typeof stores === 'string' && stores !== '';
}

function failed(images: ImageApi, id: string, what: string, cause?: Error): OpenStackError {
  return new OpenStackError(
    'image-failed',
    `cloud ${images.cloud}: image ${id} ${what}: the cloud did not take its data; see the log of its image service`,
    { cause },
  );
}
