import { documentsOf } from '../documents.ts';
import { InvalidResultError } from '../gearman/run-job.ts';
import { uploadIdOf } from '../ownership.ts';
import type { NewStep } from '../planning/pass.ts';
import { decodeResult } from '../protocol/job-result.ts';
import type { Upload } from '../records.ts';
import { recordFailure, type TaskContext } from './tasks.ts';

/** Makes the record of an upload. It is written before {@link followUpload} starts the upload. */
export function newUpload(
  { owner, now }: Pick<TaskContext, 'owner' | 'now'>,
  { imageId, diskimage, provider, imageName, reason }: Extract<NewStep, { kind: 'upload' }>,
  number: number,
): Upload {
  return {
    id: uploadIdOf(number, owner),
    imageId,
    diskimage,
    provider,
    imageName,
    state: 'uploading',
    reason,
    requestedAt: now(),
    leftovers: true,
    seen: false,
  };
}

/**
 * Submits the job of an upload and waits for its end. Submitting it again resumes the same upload, at the job server
 * and at the builder, so that the provider gets one image.
 *
 * @throws GearmanError if the fate of the job is unknown; the record is unchanged, and the upload is resumed later
 */
export async function followUpload(
  context: TaskContext,
  uploadId: string,
  signal: AbortSignal,
): Promise<void> {
  const { state, logger } = context;
  const upload = state.uploads.get(uploadId);
  if (upload === undefined) return;
  const description = describeUpload(upload);
  try {
    const result = await context.fleet.run(
      `image-upload:${upload.imageId}`,
      {
        provider: upload.provider,
        'image-name': upload.imageName,
        checksum: state.builds.get(upload.imageId)?.checksum ?? '',
        attestations: true,
      },
      uploadId,
      { time: timeLimit(context, upload), signal },
    );
    const { 'external-id': externalId, checksum, ...more } = decodeResult(result);
    if (!externalId) {
      const shown = JSON.stringify(result.toString('utf8').slice(0, 80));
      throw new InvalidResultError(`the builder returned ${shown} without an external-id; check its log`);
    }
    if (checksum) await verifyChecksum(context, upload, checksum);
    await state.updateUpload(
      uploadId,
      { state: 'ready', externalId, endedAt: context.now(), leftovers: false },
      documentsOf(more, upload.imageId, uploadId, logger),
    );
    logger.info(`${description} is ready: ${externalId}`);
  } catch (error) {
    await recordFailure(context, description, error, signal, (fields) =>
      state.updateUpload(uploadId, fields),
    );
  }
}

/** Compares the uploaded checksum with the build's record, or adds it to a record without a checksum. */
async function verifyChecksum({ state }: TaskContext, { imageId }: Upload, uploaded: string): Promise<void> {
  const recorded = await state.recordChecksum(imageId, uploaded);
  if (recorded === undefined || recorded === uploaded || formatOf(recorded) !== formatOf(uploaded)) return;
  throw new InvalidResultError(
    `the builder uploaded ${imageId} with checksum ${uploaded}, but the record has ${recorded}; ` +
      'the upload is discarded',
  );
}

/** Returns the format of the file that a checksum belongs to. */
function formatOf(checksum: string): string | undefined {
  return checksum.split(':')[0];
}

function timeLimit(context: TaskContext, { provider }: Upload): number {
  const found = context.configuration().providers.find(({ name }) => name === provider);
  return found?.uploadTimeout ?? 3600;
}

/** Describes an upload for log lines. */
export function describeUpload({ id, imageId, provider }: Upload): string {
  return `upload ${id} of ${imageId} to ${provider}`;
}
