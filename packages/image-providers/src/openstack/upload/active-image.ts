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

/** The statuses while the cloud stores the data. */
const STORING: readonly string[] = ['saving', 'importing'];

/** The statuses that are no end, by how the data comes. Any other but `active` means that it failed. */
const PENDING: Readonly<Record<Arrival, readonly string[]>> = {
  file: STORING,
  import: [...STORING, 'queued', 'uploading'],
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
  let storing = false;
  const look = async (): Promise<GlanceImage | undefined> => {
    const image = await images.get(id, signal).catch((error: unknown) => {
      if (error instanceof OpenStackError && error.code === 'not-found')
        throw failed(images, id, 'is gone', error);
      throw error;
    });
    last = image.status;
    if (last === 'active') return image;
    storing ||= STORING.includes(last);
    const pending = PENDING[arrival].includes(last);
    const waits = pending && !STORING.includes(last);
    if (!pending || (storing && waits)) throw failed(images, id, `went to ${last} instead of active`);
    if (waits) await assertImporting(images, id, signal);
    return undefined;
  };
  const onTimeout = (): Error =>
    new OpenStackError(
      'image-timeout',
      `cloud ${images.cloud}: image ${id} is ${last} and not active after ${timeout} s; look at the cloud's image service, or raise upload-timeout`,
    );
  return await poll(look, { timeout, signal, onTimeout });
}

/** An import that fails before it stored anything leaves the image as it was. */
async function assertImporting(images: ImageApi, id: string, signal: AbortSignal): Promise<void> {
  const tasks = await images.imageTasks(id, signal);
  const failure = tasks.find(({ status }) => status === 'failure');
  if (failure !== undefined) throw failed(images, id, `could not be imported (${failure.message})`);
}

function failed(images: ImageApi, id: string, what: string, cause?: Error): OpenStackError {
  return new OpenStackError(
    'image-failed',
    `cloud ${images.cloud}: image ${id} ${what}: the cloud did not take its data; see the log of its image service`,
    { cause },
  );
}
