import { type GlanceImage, isRunning } from '../glance-image.ts';
import type { ImageApi } from '../image-api.ts';
import { OpenStackError, unlessAbsent } from '../openstack-error.ts';
import { poll } from './poll.ts';

export interface ActiveImageOptions {
  /** How the data arrives: all of a `file` was sent before, but an `import` may not have started. */
  readonly arrival: 'file' | 'import';
  /** Seconds. */
  readonly timeout: number;
  readonly signal: AbortSignal;
}

/** Statuses while the cloud stores the data. */
const STORING: readonly string[] = ['saving', 'importing'];

/** Statuses before that. Any other one than `active` is a failure. */
const WAITING = { file: [] as readonly string[], import: ['queued', 'uploading'] };

/**
 * Waits until an image is active. Glance v2 has no status for a failure: the image returns to its earlier status.
 *
 * @throws OpenStackError `image-failed`, `image-timeout`
 */
export async function activeImage(
  images: ImageApi,
  id: string,
  { arrival, timeout, signal }: ActiveImageOptions,
): Promise<GlanceImage> {
  let status = '';
  let hasStored = false;
  const check = async (): Promise<GlanceImage | undefined> => {
    const image = await images.get(id, signal).catch(unlessAbsent);
    if (image === undefined) throw failed(images, id, 'is gone');
    status = image.status;
    if (status === 'active') return image;
    if (STORING.includes(status)) {
      hasStored = true;
    } else if (!WAITING[arrival].includes(status) || !(await mayImport(images, id, hasStored, signal))) {
      throw failed(images, id, `went to ${status} instead of active`);
    }
    return undefined;
  };
  const onTimeout = (): Error =>
    new OpenStackError(
      'image-timeout',
      `cloud ${images.cloud}: image ${id} is ${status} and not active after ${timeout} s; look at the cloud's image service, or raise image-upload-timeout`,
    );
  return await poll(check, { timeout, signal, onTimeout });
}

/**
 * Whether the import of an image runs or may start later. A failed import returns the image to its earlier status; its
 * task has the reason a moment later.
 *
 * @param hasStored whether the cloud has been storing data
 */
async function mayImport(
  images: ImageApi,
  id: string,
  hasStored: boolean,
  signal: AbortSignal,
): Promise<boolean> {
  const tasks = await images.imageTasks(id, signal);
  const failure = tasks.find(({ status }) => status === 'failure');
  if (failure !== undefined) throw failed(images, id, `could not be imported (${failure.message ?? ''})`);
  return !hasStored || tasks.some(isRunning);
}

function failed({ cloud }: ImageApi, id: string, what: string): OpenStackError {
  return new OpenStackError(
    'image-failed',
    `cloud ${cloud}: image ${id} ${what}: the cloud did not store its data; see the log of its image service`,
  );
}
