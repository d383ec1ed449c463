import { JobFailure, type WorkerJob } from '@nodepool-builder/gearman-node';
import { ImageError, type ImageErrorCode, type Logger, type Progress } from '@nodepool-builder/image-builder';
import { InvalidArgumentsError } from './job-arguments.ts';
import { UploadTimeoutError } from './upload-time-limit.ts';

/**
 * Errors that end a job with WORK_EXCEPTION, because request or configuration are invalid. All other errors of
 * image-builder end it with WORK_FAIL, as in the Python builder.
 */
const EXCEPTIONS: ReadonlySet<ImageErrorCode> = new Set(['invalid-image-id', 'invalid-configuration']);

/** A provider rejected an image. As in the Python builder, the job ends with WORK_EXCEPTION. */
export class UploadError extends Error {
  override readonly name = 'UploadError';
}

/** This builder's image differs from the checksum on record. The job ends with WORK_EXCEPTION. */
export class OtherCopyError extends Error {
  override readonly name = 'OtherCopyError';
}

/**
 * Runs the work of a job and logs its end. A JobFailure becomes WORK_FAIL, which has no room for a reason; any other
 * error becomes WORK_EXCEPTION with its message.
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

/** False for an internal error, whose stack trace is logged. */
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

/** Makes a callback that sends progress in whole per cent, each value once. */
export function reportProgress(job: Pick<WorkerJob, 'sendStatus'>): (progress: Progress) => void {
  let last = -1;
  return ({ done, total }) => {
    const percent = total > 0 ? Math.floor((Math.min(done, total) * 100) / total) : 0;
    if (percent <= last) return;
    last = percent;
    job.sendStatus(percent, 100);
  };
}

/**
 * Formats the payload of WORK_COMPLETE, byte for byte as Python's `json.dumps` does.
 *
 * @param checksum only for our own clients, which ask for it
 */
export function jobResult(key: 'image-id' | 'external-id', value: string, checksum?: string): string {
  const more = checksum === undefined ? '' : `, "checksum": ${asPythonWrites(checksum)}`;
  return `{"${key}": ${asPythonWrites(value)}${more}}`;
}

function asPythonWrites(text: string): string {
  return JSON.stringify(text).replace(
    /[^ -~]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
