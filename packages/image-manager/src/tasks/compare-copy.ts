import { randomUUID } from 'node:crypto';
import { JobExceptionError } from '@nodepool-builder/gearman-node';
import type { TaskContext } from './task-context.ts';

/** Time limit for comparing a copy, in seconds: the builder may have to read all of it. */
const COMPARE_TIME = 3600;

/**
 * Asks one of the builders that offer an image to compare its copy with the checksum on record; the job server
 * chooses which. That builder deletes a copy that differs.
 */
export async function compareCopy(
  { fleet, state, logger }: TaskContext,
  imageId: string,
  signal: AbortSignal,
): Promise<void> {
  const checksum = state.builds.get(imageId)?.checksum;
  if (checksum === undefined) return;
  logger.warn(`several builders offer image ${imageId}; asking one to compare its copy with the record`);
  try {
    const unique = `compare-${randomUUID()}`;
    await fleet.run(`image-upload:${imageId}`, { compare: checksum }, unique, { time: COMPARE_TIME, signal });
  } catch (error) {
    if (!(error instanceof JobExceptionError)) throw error;
    logger.warn(`image ${imageId}: ${error.data.toString('utf8')}`);
  }
}
