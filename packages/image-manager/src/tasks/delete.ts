import { setTimeout as delay } from 'node:timers/promises';
import { GearmanError } from '@nodepool-builder/gearman-node';
import type { ImageProvider } from '@nodepool-builder/image-builder';
import type { FleetStatus } from '../gearman/builder-fleet.ts';
import { ImageGoneError } from '../gearman/run-job.ts';
import { buildKeyOf } from '../ownership.ts';
import type { Upload } from '../records.ts';
import type { TaskContext } from './tasks.ts';
import { describeUpload } from './upload.ts';

/** Time limit for deleting an image's files, in seconds. */
const DELETE_TIME = 600;

/** Number of polls, and milliseconds between them, until the deleted image is no longer offered. */
const POLLS = 20;
const POLL_INTERVAL = 250;

/** Number of consecutive polls without the image after which its deletion counts as stuck. */
const POLLS_WITHOUT_IMAGE = 2;

/** Deletes an image in its provider. After a failure the record stays `deleting`, and the manager retries. */
export async function deleteUpload(
  context: TaskContext,
  uploadId: string,
  signal: AbortSignal,
  reason: string,
): Promise<void> {
  const { state, logger } = context;
  const upload = state.uploads.get(uploadId);
  if (upload === undefined) return;
  const description = describeUpload(upload);
  const deleting = deletionOf(upload);
  if (upload.state !== 'deleting') {
    await state.change({ uploads: [deleting] });
    logger.info(`deleting ${description}: ${reason}`);
  }
  const provider = providerOf(context, upload.provider);
  if (deleting.externalId === undefined) await provider.discard(uploadId, { signal, image: upload });
  else await provider.delete(deleting.externalId, { signal });
  await state.updateUpload(uploadId, { state: 'deleted', leftovers: false });
  logger.info(`deleted ${description}`);
}

/**
 * Returns the record of an upload that is being deleted. A missing upload loses its external id, which a later upload
 * of its build may have, and is deleted by the upload's id.
 */
export function deletionOf(upload: Upload): Upload {
  if (upload.state !== 'missing') return { ...upload, state: 'deleting' };
  const { externalId: _, ...rest } = upload;
  return { ...rest, state: 'deleting' };
}

/** Deletes what a failed upload may have left in the provider. */
export async function discardUpload(
  context: TaskContext,
  uploadId: string,
  signal: AbortSignal,
): Promise<void> {
  const upload = context.state.uploads.get(uploadId);
  if (upload === undefined) return;
  await providerOf(context, upload.provider).discard(uploadId, { signal, image: upload });
  await context.state.updateUpload(uploadId, { leftovers: false });
}

function providerOf(context: TaskContext, name: string): ImageProvider {
  const provider = context.provider(name);
  if (provider !== undefined) return provider;
  throw new Error(
    `provider "${name}" is not configured; restore its entry so that its images can be deleted`,
  );
}

/**
 * Has builders delete an image's files, one builder after the other, until none offers the image. A builder with the
 * files may be away. An image that no builder offered counts as deleted after `absence-timeout`.
 */
export async function deleteBuild(
  context: TaskContext,
  imageId: string,
  signal: AbortSignal,
  reason: string,
): Promise<void> {
  const { state, fleet, logger } = context;
  const build = state.builds.get(imageId);
  if (build === undefined) return;
  if (build.state !== 'deleting') {
    await state.updateBuild(imageId, { state: 'deleting' });
    logger.info(`deleting build ${imageId}: ${reason}`);
  }
  const isGone = (await deleteFiles(fleet, imageId, signal)) || context.isLongAbsent(imageId);
  // If a builder returns with the image later, the scan for orphans finds it.
  if (!isGone) throw new Error('a builder that is away may still have its files');
  await state.updateBuild(imageId, { state: 'deleted' });
  logger.info(`deleted build ${imageId}`);
}

/**
 * Deletes the files of an image at the builders that offer it.
 *
 * @returns true if a builder deleted them and no builder offers the image any longer
 * @throws GearmanError
 */
export async function deleteFiles(
  fleet: TaskContext['fleet'],
  imageId: string,
  signal: AbortSignal,
): Promise<boolean> {
  if (!fleet.lastStatus.offered.deletes.has(imageId)) return false;
  const vanished = watchForVanishing(fleet, imageId);
  try {
    const limits = { time: DELETE_TIME, signal: AbortSignal.any([signal, vanished.signal]) };
    await fleet.run(`image-delete:${imageId}`, {}, buildKeyOf(imageId), limits);
  } catch (error) {
    signal.throwIfAborted();
    if (vanished.signal.aborted) return false;
    // The builder may no longer have the image. The polls below decide.
    if (!(error instanceof GearmanError) || error.code !== 'job-failed') throw error;
  } finally {
    vanished.stop();
  }
  // A builder sends its result before it deregisters the function.
  for (let poll = 0; poll < POLLS; poll += 1) {
    const status = await fleet.status();
    if (isOfferedNowhere(status, imageId)) return true;
    await delay(POLL_INTERVAL, undefined, { signal });
  }
  return false;
}

/** Aborts a job when no worker offers its function, because the job could stay in the queue forever. */
function watchForVanishing(
  fleet: TaskContext['fleet'],
  imageId: string,
): { readonly signal: AbortSignal; readonly stop: () => void } {
  const controller = new AbortController();
  let polls = 0;
  const timer = setInterval(() => {
    // After one poll the result may still be on its way.
    polls = isOfferedNowhere(fleet.lastStatus, imageId) ? polls + 1 : 0;
    if (polls === POLLS_WITHOUT_IMAGE)
      controller.abort(new ImageGoneError(`no builder offers image ${imageId} any longer`));
  }, POLL_INTERVAL);
  return { signal: controller.signal, stop: () => clearInterval(timer) };
}

function isOfferedNowhere({ offered, isComplete }: FleetStatus, imageId: string): boolean {
  return isComplete && !offered.deletes.has(imageId);
}
