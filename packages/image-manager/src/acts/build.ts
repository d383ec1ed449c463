import type { ManagedDiskImage } from '../configuration.ts';
import { buildKeyOf, imageIdOf } from '../ownership.ts';
import type { ActContext } from './act-context.ts';
import { jobFailure } from './job-failure.ts';

/** What a new build begins with. */
export interface BuildOrder {
  readonly diskimage: ManagedDiskImage;
  readonly reason: string;
  /** The requests that it answers. */
  readonly requests: readonly number[];
}

/** Puts a new build on record; it is begun by {@link followBuild}. Its id. */
export async function recordBuild(context: ActContext, order: BuildOrder): Promise<string> {
  const { diskimage, reason, requests } = order;
  const id = imageIdOf(diskimage.name, await context.state.nextNumber(), context.owner);
  await context.state.change({
    builds: [
      {
        id,
        diskimage: diskimage.name,
        state: 'building',
        configuration: diskimage.digest,
        reason,
        requestedAt: context.now(),
        withdrawn: false,
      },
    ],
    handledRequests: requests,
  });
  context.logger.info(`build ${id}: ${reason}`);
  return id;
}

/**
 * Sees a build on record to its end. It may have begun, and ended, while nobody looked.
 *
 * @throws GearmanError if nothing is known of the job: the build is still on record then, to be followed again
 */
export async function followBuild(context: ActContext, imageId: string, signal: AbortSignal): Promise<void> {
  const { state, logger } = context;
  const build = state.builds.get(imageId);
  if (build === undefined) return;
  if (!context.lastObservation().offered.uploads.has(imageId)) {
    try {
      await context.fleet.run(
        `image-build:${build.diskimage}`,
        { 'image-id': imageId },
        buildKeyOf(imageId),
        { time: timeLimit(context, build.diskimage), signal },
      );
    } catch (error) {
      const reason = jobFailure(error, signal);
      if (reason === undefined) throw error;
      await state.updateBuild(imageId, { state: 'failed', endedAt: context.now(), error: reason });
      logger.warn(`build ${imageId} failed: ${reason}`);
      return;
    }
  }
  await state.updateBuild(imageId, { state: 'ready', endedAt: context.now() });
  logger.info(`build ${imageId} is ready`);
}

/** Of a disk image that is not configured any more nobody knows it: the longest is taken. */
function timeLimit(context: ActContext, name: string): number {
  const { diskimages } = context.configuration();
  const found = diskimages.find((diskimage) => diskimage.name === name);
  return found?.buildTimeout ?? Math.max(...diskimages.map(({ buildTimeout }) => buildTimeout), 28_800);
}
