import { CloudError, poll, unlessAbsent } from '@nodepool-builder/image-builder/plugin';
import { type GlanceImage, isRunning } from '../glance-image.ts';
import type { ImageApi } from '../image-api.ts';

export interface ActiveImageOptions {
  /** Transfer of the data. `file`: all data has been sent. `import`: the import may not have started. */
  readonly arrival: 'file' | 'import';
  /** Timeout in seconds. */
  readonly timeout: number;
  readonly signal: AbortSignal;
}

/** Statuses while the cloud stores the data. */
const STORING: readonly string[] = ['saving', 'importing'];

/** Statuses before the cloud stores the data. Any other status except `active` is a failure. */
const WAITING = { file: [] as readonly string[], import: ['queued', 'uploading'] };

/**
 * Waits until an image is active. Glance v2 has no failure status: the image returns to its earlier status, or stays
 * `importing` since Glance 30 (2025.1).
 *
 * @throws CloudError `image-failed`, `image-timeout`
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
    const isStoring = STORING.includes(status);
    hasStored ||= isStoring;
    const isImporting = arrival === 'import' && (await hasRunningImport(images, id, signal));
    if (isStoring || (WAITING[arrival].includes(status) && (isImporting || !hasStored))) return undefined;
    throw failed(images, id, `went to ${status} instead of active`);
  };
  const onTimeout = (): Error =>
    new CloudError(
      'image-timeout',
      `cloud ${images.cloud}: image ${id} is ${status} and not active after ${timeout} s; check the cloud's image service, or increase image-upload-timeout`,
    );
  return await poll(check, { timeout, signal, onTimeout });
}

/**
 * Returns whether an import of an image is running. The reason for a failed import appears some time after the image's
 * status changed.
 *
 * @throws CloudError `image-failed` with the reason if an import failed and no other is running
 */
async function hasRunningImport(images: ImageApi, id: string, signal: AbortSignal): Promise<boolean> {
  const tasks = await images.imageTasks(id, signal);
  if (tasks.some(isRunning)) return true;
  const failure = tasks.find(({ status }) => status === 'failure');
  if (failure === undefined) return false;
  throw failed(images, id, `could not be imported (${failure.message || 'the cloud gives no reason'})`);
}

function failed({ cloud }: ImageApi, id: string, what: string): CloudError {
  return new CloudError(
    'image-failed',
    `cloud ${cloud}: image ${id} ${what}: the cloud did not store its data; check the image service's log`,
  );
}
