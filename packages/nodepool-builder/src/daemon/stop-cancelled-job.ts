import type { CancelledJob, ServerAddress } from '@nodepool-builder/gearman-node';
import type { Logger } from '@nodepool-builder/image-builder';
import { stopAtBuilder } from '@nodepool-builder/image-manager';
import { GEARADMIN } from '@nodepool-builder/image-manager/protocol';
import { subjectOf, verbOf } from '../protocol/functions.ts';
import { keysOf } from '../protocol/job-reply.ts';
import { errorLine } from '../terms/command-error.ts';
import { uploadIdOf } from './jobs/upload-record.ts';

/**
 * Requests the builder to stop a build or an upload whose job `gearadmin --cancel-job` has removed from our
 * {@link JobServer}, regardless of the client. Does nothing for a job that waits.
 */
export async function stopCancelledJob(
  job: CancelledJob,
  server: ServerAddress,
  logger: Logger,
): Promise<void> {
  const verb = verbOf(job.function);
  const isBuild = verb === 'image-build' || verb === 'image-build-paused';
  if (!job.isRunning || (!isBuild && verb !== 'image-upload')) return;
  try {
    const imageId = isBuild ? String(keysOf(job.payload)['image-id']) : subjectOf(job.function);
    await stopAtBuilder([server], imageId, GEARADMIN, isBuild ? undefined : uploadIdOf(job));
    logger.info(`job ${job.handle} of ${job.function} was cancelled; its builder has stopped it`);
  } catch (error) {
    const remedy = '"nodepool-builder cancel" stops it';
    logger.warn(`job ${job.handle} of ${job.function} may still run: ${errorLine(error)}; ${remedy}`);
  }
}
