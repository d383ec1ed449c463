import { uploadIdOf } from '../ownership.ts';
import type { Step } from '../planning/step.ts';
import type { Upload } from '../records.ts';
import type { ActContext } from './act-context.ts';
import { jobFailure, textIn, UnusableResultError } from './job-failure.ts';

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
      {
        provider: upload.provider,
        'image-name': upload.imageName,
        checksum: state.builds.get(upload.imageId)?.checksum ?? '',
      },
      uploadId,
      { time: timeLimit(context, upload), signal },
    );
    const externalId = readExternalId(result);
    await checkBytes(context, upload, textIn(result, 'checksum'));
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

/** The first upload of a build without a checksum puts one on record. */
async function checkBytes(
  { state }: ActContext,
  { imageId }: Upload,
  uploaded: string | undefined,
): Promise<void> {
  if (uploaded === undefined) return;
  const meant = await state.meanBytes(imageId, uploaded);
  if (meant === undefined || meant === uploaded || formatOf(meant) !== formatOf(uploaded)) return;
  throw new UnusableResultError(
    `the builder uploaded other bytes of ${imageId} than those on record: ${uploaded}, not ${meant}; they are removed`,
  );
}

/** Format of the file that a checksum belongs to. */
function formatOf(checksum: string): string | undefined {
  return checksum.split(':')[0];
}

function readExternalId(result: Buffer): string {
  const id = textIn(result, 'external-id');
  if (id !== undefined) return id;
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
