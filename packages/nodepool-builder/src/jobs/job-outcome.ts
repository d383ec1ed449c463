import { JobFailure } from '@nodepool-builder/gearman-node';
import { ImageError, type ImageErrorCode, type Logger } from '@nodepool-builder/image-builder';
import { InvalidArgumentsError } from './job-arguments.ts';
import { UploadTimeoutError } from './upload-time-limit.ts';

/**
 * Errors of ours that end a job in WORK_EXCEPTION because the request, or the configuration, makes no sense.
 * All others of image-builder say that it could not be done: WORK_FAIL, as the Python builder answers.
 */
const EXCEPTIONS: ReadonlySet<ImageErrorCode> = new Set(['invalid-image-id', 'invalid-configuration']);

/** A provider did not take an image. As with the Python builder, the job ends in WORK_EXCEPTION. */
export class UploadError extends Error {
  override readonly name = 'UploadError';
}

/** This builder's image differs from the checksum on record. The job ends with WORK_EXCEPTION. */
export class OtherCopyError extends Error {
  override readonly name = 'OtherCopyError';
}

/**
 * Runs the work of a job and gives its failure the form that Gearman knows: a JobFailure becomes WORK_FAIL,
 * anything else WORK_EXCEPTION with its message. WORK_FAIL carries no reason, so the log has to.
 */
export async function settleJob<T>(what: string, logger: Logger, work: () => Promise<T>): Promise<T> {
  const started = performance.now();
  try {
    const result = await work();
    logger.info(`${what}: done in ${((performance.now() - started) / 1000).toFixed(1)} s`);
    return result;
  } catch (error) {
    if (isExpected(error)) logger.error(`${what}: failed: ${error.message}`);
    else logger.error(`${what}: failed`, error instanceof Error ? error : new Error(String(error)));
    if (error instanceof ImageError && !EXCEPTIONS.has(error.code)) {
      throw new JobFailure(error.message, { cause: error });
    }
    throw error;
  }
}

/** Whether the message says it all; of a defect the trace is wanted. */
function isExpected(error: unknown): error is Error {
  return [
    JobFailure,
    ImageError,
    InvalidArgumentsError,
    UploadError,
    UploadTimeoutError,
    OtherCopyError,
  ].some((known) => error instanceof known);
}
