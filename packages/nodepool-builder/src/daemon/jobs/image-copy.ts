import type { WorkerJob } from '@nodepool-builder/gearman-node';
import { type Image, ImageError, type ImageRepository, type Logger } from '@nodepool-builder/image-builder';
import { checksumsOf } from '@nodepool-builder/image-builder/internal';
import { subjectOf } from '../../protocol/functions.ts';
import { inMessage, JobError, settleJob } from '../../protocol/job-reply.ts';

/**
 * Runs an `image-delete:<image-id>` job. Its argument may be anything.
 *
 * The repository keeps a record of the deletion until the job server has acknowledged the result. If this process dies
 * before that, the next process gets the job again, and must still offer its function.
 */
export async function runDeleteJob(
  repository: ImageRepository,
  logger: Logger,
  job: WorkerJob,
): Promise<void> {
  const imageId = subjectOf(job.function);
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

/** Returns `qcow2:<sha256>` for one file of an image; undefined if no digest is known. */
export function checksumOf({ files }: Pick<Image, 'files'>): string | undefined {
  return files
    .flatMap(({ format, checksums }) => (checksums === undefined ? [] : [`${format}:${checksums.sha256}`]))
    .at(0);
}

const CHECKSUM = /^([^:]+):([0-9a-f]{64})$/;

/**
 * Deletes an image whose checksum differs from the record. After a network partition, another builder may have built
 * the same image-id.
 *
 * @param recorded the checksum on record, from {@link checksumOf}
 * @throws JobError if the image was deleted, or if the text is not a checksum
 */
export async function deleteOtherCopy(
  repository: ImageRepository,
  imageId: string,
  recorded: string,
  { signal, logger }: { readonly signal: AbortSignal; readonly logger: Logger },
): Promise<void> {
  const [, format, sha256] = CHECKSUM.exec(recorded) ?? [];
  if (sha256 === undefined) {
    throw new JobError(`the job's checksum ${inMessage(recorded)} is invalid; send "<format>:<sha256>"`);
  }
  const file = repository.get(imageId)?.files.find((each) => each.format === format);
  if (file === undefined) return; // there is no file of that format to compare
  const found = file.checksums ?? (await checksumsOf(file.path, { signal }));
  if (found.sha256 === sha256) return;
  logger.warn(
    `image ${imageId} differs from the record, because another builder built it too; deleting this copy`,
  );
  await repository.delete(imageId);
  await repository.forgetDelete(imageId);
  throw new JobError(
    `this builder's copy of image ${imageId} has ${format} sha256 ${found.sha256}, ` +
      `but the record has ${sha256}; the copy was deleted`,
  );
}
