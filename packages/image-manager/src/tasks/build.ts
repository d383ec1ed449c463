import { randomUUID } from 'node:crypto';
import { GearmanError } from '@nodepool-builder/gearman-node';
import type { ManagedDiskImage } from '../configuration.ts';
import { documentsOf, type ImageDocument } from '../documents.ts';
import { jobFailure } from '../gearman/run-job.ts';
import { buildKeyOf, imageIdOf } from '../ownership.ts';
import { decodeResult } from '../protocol/job-result.ts';
import type { Build } from '../records.ts';
import { recordFailure, type TaskContext } from './tasks.ts';

/** Time limit for comparing a copy, in seconds. The builder may have to read all of it. */
const COMPARE_TIME = 3600;

/** Makes the record of a build. It is written before {@link followBuild} starts the build. */
export function newBuild(
  { owner, now }: Pick<TaskContext, 'owner' | 'now'>,
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
 * Submits the job of a build and waits for its end. The job may already have started or ended.
 *
 * @throws GearmanError if the fate of the job is unknown; the record is unchanged, and the build is resumed later
 */
export async function followBuild(context: TaskContext, imageId: string, signal: AbortSignal): Promise<void> {
  const { state, logger } = context;
  const build = state.builds.get(imageId);
  if (build === undefined) return;
  let documents: readonly ImageDocument[] = [];
  if (!context.fleet.lastStatus.offered.uploads.has(imageId)) {
    try {
      const result = await context.fleet.run(
        `image-build:${build.diskimage}`,
        { 'image-id': imageId, checksum: true, attestations: true, packages: true },
        buildKeyOf(imageId),
        { time: timeLimit(context, build.diskimage), signal },
      );
      const { checksum, ...more } = decodeResult(result);
      documents = documentsOf(more, imageId, undefined, logger);
      if (checksum) await state.recordChecksum(imageId, checksum);
    } catch (error) {
      return await recordFailure(context, `build ${imageId}`, error, signal, (fields) =>
        state.updateBuild(imageId, fields),
      );
    }
  }
  await state.updateBuild(imageId, { state: 'ready', endedAt: context.now() }, documents);
  logger.info(`build ${imageId} is ready`);
}

/** Returns the time limit of a build. A disk image that is no longer configured gets the maximum of all limits. */
function timeLimit(context: TaskContext, name: string): number {
  const { diskimages } = context.configuration();
  const found = diskimages.find((diskimage) => diskimage.name === name);
  return found?.buildTimeout ?? Math.max(...diskimages.map(({ buildTimeout }) => buildTimeout), 28_800);
}

/**
 * Requests one of the builders that offer an image to compare its copy with the checksum on record. The job server
 * chooses the builder, which deletes a copy that differs.
 */
export async function compareCopy(
  { fleet, state, logger }: TaskContext,
  imageId: string,
  signal: AbortSignal,
): Promise<void> {
  const checksum = state.builds.get(imageId)?.checksum;
  if (checksum === undefined) return;
  logger.warn(`several builders offer image ${imageId}; requesting one to compare its copy with the record`);
  try {
    const unique = `compare-${randomUUID()}`;
    await fleet.run(`image-upload:${imageId}`, { compare: checksum }, unique, { time: COMPARE_TIME, signal });
  } catch (error) {
    if (!(error instanceof GearmanError && error.code === 'job-exception')) throw error;
    logger.warn(`image ${imageId}: ${jobFailure(error, signal)}`);
  }
}
