import type { ManagedDiskImage } from '../configuration.ts';
import { buildKeyOf, imageIdOf } from '../ownership.ts';
import type { Build } from '../records.ts';
import type { ActContext } from './act-context.ts';
import { jobFailure, textIn } from './job-failure.ts';

/** A new build, as it goes on record before it is begun by {@link followBuild}. */
export function newBuild(
  { owner, now }: Pick<ActContext, 'owner' | 'now'>,
  diskimage: ManagedDiskImage,
  reason: string,
  number: number,
): Build {
  return {
    id: imageIdOf(diskimage.name, number, owner),
    diskimage: diskimage.name,
    state: 'building',
    configuration: diskimage.digest,
    reason,
    requestedAt: now(),
    withdrawn: false,
  };
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
      const result = await context.fleet.run(
        `image-build:${build.diskimage}`,
        { 'image-id': imageId, checksum: true },
        buildKeyOf(imageId),
        { time: timeLimit(context, build.diskimage), signal },
      );
      const checksum = textIn(result, 'checksum');
      if (checksum !== undefined) await state.meanBytes(imageId, checksum);
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
