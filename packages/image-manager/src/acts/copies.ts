import { randomUUID } from 'node:crypto';
import { JobExceptionError } from '@nodepool-builder/gearman-node';
import type { ActContext } from './act-context.ts';

/** How long a builder may take to compare its copy, in seconds: it may have to read it. */
const COMPARE_TIME = 3600;

/**
 * Has one of the builders that offer an image compare its copy with the bytes on record. Which one it is is up to the
 * job server. A copy that differs is deleted there.
 */
export async function compareCopy(
  { fleet, state, logger }: ActContext,
  imageId: string,
  signal: AbortSignal,
): Promise<void> {
  const checksum = state.builds.get(imageId)?.checksum;
  if (checksum === undefined) return;
  logger.warn(`more than one builder offers image ${imageId}: one of them compares its copy with the record`);
  try {
    const unique = `compare-${randomUUID()}`;
    await fleet.run(`image-upload:${imageId}`, { compare: checksum }, unique, { time: COMPARE_TIME, signal });
  } catch (error) {
    if (!(error instanceof JobExceptionError)) throw error;
    logger.warn(`image ${imageId}: ${error.data.toString('utf8')}`);
  }
}
