import type { GlanceImage, GlanceTask } from '../glance-image.ts';
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

/** The statuses before that, by how the data comes. Any other but `active` means that it failed. */
const WAITING: Readonly<Record<Arrival, readonly string[]>> = {
  file: [],
  import: ['queued', 'uploading'],
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
    if (STORING.includes(last)) {
      storing = true;
    } else if (!WAITING[arrival].includes(last) || !(await isImporting(images, id, storing, signal))) {
      throw failed(images, id, `went to ${last} instead of active`);
    }
    return undefined;
  };
  const onTimeout = (): Error =>
    new OpenStackError(
      'image-timeout',
      `cloud ${images.cloud}: image ${id} is ${last} and not active after ${timeout} s; look at the cloud's image service, or raise image-upload-timeout`,
    );
  return await poll(look, { timeout, signal, onTimeout });
}

/**
 * Whether an import goes on, or may yet begin, of an image that is as it was before. One that failed leaves it so, and
 * its task says why, a moment later.
 *
 * @param hasBegun whether the cloud was seen to store the image's data
 */
async function isImporting(
  images: ImageApi,
  id: string,
  hasBegun: boolean,
  signal: AbortSignal,
): Promise<boolean> {
  const tasks = await images.imageTasks(id, signal);
  const failure = tasks.find(({ status }) => status === 'failure');
  if (failure !== undefined) throw failed(images, id, `could not be imported (${failure.message})`);
  return !hasBegun || tasks.some(isUnderWay);
}

/** Whether a task has not ended. */
export function isUnderWay({ status }: GlanceTask): boolean {
  return status === 'pending' || status === 'processing';
}

function failed(images: ImageApi, id: string, what: string, cause?: Error): OpenStackError {
  return new OpenStackError(
    'image-failed',
    `cloud ${images.cloud}: image ${id} ${what}: the cloud did not take its data; see the log of its image service`,
    { cause },
  );
}
