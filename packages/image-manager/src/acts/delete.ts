import { setTimeout as delay } from 'node:timers/promises';
import { GearmanError } from '@nodepool-builder/gearman-node';
import type { ImageProvider } from '@nodepool-builder/image-builder';
import type { Observation } from '../gearman/builder-fleet.ts';
import { Hopeless } from '../gearman/hopeless.ts';
import { buildKeyOf } from '../ownership.ts';
import type { ActContext } from './act-context.ts';
import { uploadInWords } from './upload.ts';

/** How long a builder may take to remove an image's files, in seconds. */
const DELETE_TIME = 600;

/** How often, and how many milliseconds apart, one looks whether the image is offered no more. */
const LOOKS = 20;
const LOOK_INTERVAL = 250;

/** At so many looks in a row an image has to be offered by nobody, while its deletion is waited for. */
const LOOKS_WITHOUT = 2;

/** Removes an image from its provider. A failure leaves it `deleting`, to be tried again. */
export async function deleteUpload(
  context: ActContext,
  uploadId: string,
  reason: string,
  signal: AbortSignal,
): Promise<void> {
  const { state, logger } = context;
  const upload = state.uploads.get(uploadId);
  if (upload === undefined) return;
  const what = uploadInWords(upload);
  if (upload.state !== 'deleting') {
    await state.updateUpload(uploadId, { state: 'deleting' });
    logger.info(`${what} is being deleted: ${reason}`);
  }
  const provider = providerOf(context, upload.provider);
  if (upload.externalId === undefined) await provider.discard(uploadId, { signal });
  else await provider.delete(upload.externalId, { signal });
  await state.updateUpload(uploadId, { state: 'deleted', leftovers: false });
  logger.info(`${what} is deleted`);
}

/** Removes what a failed upload may have left. */
export async function discardUpload(
  context: ActContext,
  uploadId: string,
  signal: AbortSignal,
): Promise<void> {
  const upload = context.state.uploads.get(uploadId);
  if (upload === undefined) return;
  await providerOf(context, upload.provider).discard(uploadId, { signal });
  await context.state.updateUpload(uploadId, { leftovers: false });
}

function providerOf(context: ActContext, name: string): ImageProvider {
  const provider = context.provider(name);
  if (provider !== undefined) return provider;
  throw new Error(
    `provider "${name}" is not configured here; put it back, so that what lies there can be removed`,
  );
}

/**
 * Has builders remove an image's files, one after the other, until none offers the image. If none does, it may be
 * that the one that has it is away: the image counts as deleted when nobody has seen it for long enough.
 */
export async function deleteBuild(
  context: ActContext,
  imageId: string,
  reason: string,
  signal: AbortSignal,
): Promise<void> {
  const { state, logger } = context;
  const build = state.builds.get(imageId);
  if (build === undefined) return;
  if (build.state !== 'deleting') {
    await state.updateBuild(imageId, { state: 'deleting' });
    logger.info(`build ${imageId} is being deleted: ${reason}`);
  }
  const isGone = (await deleteFiles(context, imageId, signal)) || isLongAbsent(context, imageId);
  if (!isGone) throw new Error('it cannot be told that no builder has its files');
  await state.updateBuild(imageId, { state: 'deleted' });
  logger.info(`build ${imageId} is deleted`);
}

/** A builder that comes back with it later has a leak, which is found as such. */
function isLongAbsent({ absence, configuration }: ActContext, imageId: string): boolean {
  return (absence(imageId) ?? -Infinity) >= configuration().timing.absenceLimit * 1000;
}

/**
 * Removes the files of an image wherever they are offered.
 *
 * @returns whether a builder removed them, and none offers the image any more
 * @throws GearmanError
 */
export async function deleteFiles(
  context: Pick<ActContext, 'fleet' | 'observe' | 'lastObservation'>,
  imageId: string,
  signal: AbortSignal,
): Promise<boolean> {
  if (!context.lastObservation().offered.deletes.has(imageId)) return false;
  const vanished = watchForVanishing(context, imageId);
  try {
    const limits = { time: DELETE_TIME, signal: AbortSignal.any([signal, vanished.signal]) };
    await context.fleet.run(`image-delete:${imageId}`, '', buildKeyOf(imageId), limits);
  } catch (error) {
    signal.throwIfAborted();
    if (vanished.signal.aborted) return false;
    // A builder that does not know the image any more is no obstacle: what counts is what is offered afterwards.
    if (!(error instanceof GearmanError) || error.code !== 'job-failed') throw error;
  } finally {
    vanished.stop();
  }
  // A builder answers before it deregisters the function.
  for (let look = 0; look < LOOKS; look += 1) {
    const observation = await context.observe();
    if (isOfferedNowhere(observation, imageId)) return true;
    await delay(LOOK_INTERVAL, undefined, { signal });
  }
  return false;
}

/** A job of a function that nobody offers any more would wait in the queue until it is offered again: maybe never. */
function watchForVanishing(
  { lastObservation }: Pick<ActContext, 'lastObservation'>,
  imageId: string,
): { readonly signal: AbortSignal; readonly stop: () => void } {
  const controller = new AbortController();
  let looks = 0;
  const timer = setInterval(() => {
    // At one look it may be that the answer is on its way.
    looks = isOfferedNowhere(lastObservation(), imageId) ? looks + 1 : 0;
    if (looks === LOOKS_WITHOUT)
      controller.abort(new Hopeless(`no builder offers image ${imageId} any more`));
  }, LOOK_INTERVAL);
  return { signal: controller.signal, stop: () => clearInterval(timer) };
}

function isOfferedNowhere({ offered, isComplete }: Observation, imageId: string): boolean {
  return isComplete && !offered.deletes.has(imageId);
}
