import { uploadIdOf } from '../ownership.ts';
import type { Step } from '../planning/step.ts';
import type { Upload } from '../records.ts';
import type { ActContext } from './act-context.ts';
import { jobFailure, UnusableResultError } from './job-failure.ts';

/** A new upload, as it goes on record before it is begun by {@link followUpload}. */
export function newUpload(
  { owner, now }: Pick<ActContext, 'owner' | 'now'>,
  { imageId, diskimage, provider, imageName, reason }: Extract<Step, { act: 'upload' }>,
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
 * Sees an upload on record to its end. A job that is submitted again is the same upload, to the job server and to
 * the builder: the provider gets one image.
 *
 * @throws GearmanError if nothing is known of the job: the upload is still on record then, to be followed again
 */
export async function followUpload(
  context: ActContext,
  uploadId: string,
  signal: AbortSignal,
): Promise<void> {
  const { state, logger } = context;
  const upload = state.uploads.get(uploadId);
  if (upload === undefined) return;
  const what = uploadInWords(upload);
  try {
    const result = await context.fleet.run(
      `image-upload:${upload.imageId}`,
      { provider: upload.provider, 'image-name': upload.imageName },
      uploadId,
      { time: timeLimit(context, upload), signal },
    );
    const externalId = readExternalId(result);
    await state.updateUpload(uploadId, {
      state: 'ready',
      externalId,
      endedAt: context.now(),
      leftovers: false,
    });
    logger.info(`${what} is ready: ${externalId}`);
  } catch (error) {
    const reason = jobFailure(error, signal);
    if (reason === undefined) throw error;
    await state.updateUpload(uploadId, { state: 'failed', endedAt: context.now(), error: reason });
    logger.warn(`${what} failed: ${reason}`);
  }
}

function readExternalId(result: Buffer): string {
  try {
    const { 'external-id': id }: { 'external-id'?: unknown } = Object(JSON.parse(result.toString('utf8')));
    if (typeof id === 'string' && id !== '') return id;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  const shown = JSON.stringify(result.toString('utf8').slice(0, 80));
  throw new UnusableResultError(`the builder answered ${shown}, which has no external-id; see its log`);
}

function timeLimit(context: ActContext, { provider }: Upload): number {
  const found = context.configuration().providers.find(({ name }) => name === provider);
  return found?.uploadTimeout ?? 3600;
}

/** For log lines: which upload it is, of what, and to where. */
export function uploadInWords({ id, imageId, provider }: Upload): string {
  return `upload ${id} of ${imageId} to ${provider}`;
}
