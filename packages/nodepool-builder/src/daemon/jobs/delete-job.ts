import type { WorkerJob } from '@nodepool-builder/gearman-node';
import { ImageError, type ImageRepository, type Logger } from '@nodepool-builder/image-builder';
import { subjectOf } from '../../protocol/functions.ts';
import { settleJob } from '../../protocol/job-reply.ts';

/** State that `image-delete` jobs share. */
export interface DeleteJobContext {
  readonly repository: ImageRepository;
  readonly logger: (name: string) => Logger;
}

/**
 * Runs an `image-delete:<image-id>` job. Its argument may be anything.
 *
 * The repository keeps a record of the deletion until the job server has acknowledged the result. If this process dies
 * before that, the next process gets the job again, and must still offer its function.
 */
export async function runDeleteJob(context: DeleteJobContext, job: WorkerJob): Promise<void> {
  const { repository } = context;
  const imageId = subjectOf(job.function);
  const logger = context.logger('nodepool.builder.UploadWorker');
  await settleJob({ action: `deletion of ${imageId}`, logger }, job, () =>
    repository.delete(imageId).catch((error: unknown) => {
      // The files were deleted before the job started, so the job is done.
      if (!(error instanceof ImageError && error.code === 'image-not-found')) throw error;
    }),
  );
  job.acknowledged
    .then(() => repository.forgetDelete(imageId))
    .catch((error: unknown) =>
      logger.warn(`cannot remove the record of the deletion of ${imageId}: ${String(error)}`),
    );
}
