import type { WorkerJob } from '@nodepool-builder/gearman-node';
import { ImageError, type ImageRepository, type Logger } from '@nodepool-builder/image-builder';
import { subjectOf } from '../daemon/functions.ts';
import { settleJob } from './job-outcome.ts';

/** What an `image-delete` job works with. */
export interface DeleteJobContext {
  readonly repository: ImageRepository;
  logger(name: string): Logger;
}

/**
 * Does `image-delete:<image-id>`; its argument is never looked at.
 *
 * The repository remembers the deletion until the job server has acknowledged the end of the job: if this
 * process dies before, the job comes again to its successor, which must then still offer the function.
 */
export async function runDeleteJob(context: DeleteJobContext, job: WorkerJob): Promise<void> {
  const imageId = subjectOf(job.function);
  const logger = context.logger('nodepool.builder.UploadWorker');
  await settleJob(`deletion of ${imageId} (job ${job.handle})`, logger, () =>
    context.repository.delete(imageId).catch((error: unknown) => {
      // Its files went by another hand while the job was on its way: there is nothing left to do.
      if (!(error instanceof ImageError && error.code === 'image-not-found')) throw error;
    }),
  );
  void forgetWhenAcknowledged(context.repository, imageId, job, logger);
}

async function forgetWhenAcknowledged(
  repository: ImageRepository,
  imageId: string,
  job: WorkerJob,
  logger: Logger,
): Promise<void> {
  try {
    await job.acknowledged;
    await repository.forgetDelete(imageId);
  } catch (error) {
    logger.warn(`deletion of ${imageId} stays on record: ${String(error)}`);
  }
}
