import { type WorkerJob, WorkFailError } from '@nodepool-builder/gearman-node';
import { ImageError, type ImageErrorCode, type Logger, type Progress } from '@nodepool-builder/image-builder';
import { partDone, visible } from '@nodepool-builder/image-builder/internal';
import { encodeFailure, encodeOperatorCancellation } from '@nodepool-builder/image-manager/protocol';
import { ProvenanceError } from '@nodepool-builder/provenance';
import { errorLine } from '../terms/command-error.ts';

/**
 * Errors that end a job with WORK_EXCEPTION, because the request or the configuration is invalid. All other errors of
 * image-builder end it with WORK_FAIL, as in the Python builder.
 */
const EXCEPTIONS: ReadonlySet<ImageErrorCode> = new Set(['invalid-image-id', 'invalid-configuration']);

/** An expected error that ends a job with WORK_EXCEPTION, as in the Python builder. */
export class JobError extends Error {
  override readonly name = 'JobError';
  /** True if a provider may still have parts of an upload. */
  readonly retriable: boolean;

  constructor(message: string, options: ErrorOptions & { readonly retriable?: boolean } = {}) {
    super(message, options);
    this.retriable = options.retriable ?? false;
  }
}

/** A build or an upload that somebody cancelled. */
export class CancelledError extends ImageError {
  /** User who cancelled it: `root@host`. */
  readonly by: string;

  constructor(by: string) {
    super('build-aborted', `cancelled by ${visible(by.slice(0, 200))}`);
    this.by = by;
  }
}

/** Log settings for the end of a job. The work of the job may change them. */
export interface JobLog {
  /** `upload of debian-1`. */
  action: string;
  logger: Logger;
}

/**
 * Runs the work of a job and logs its end, a failure only once. A WorkFailError becomes WORK_FAIL, which cannot
 * transmit a reason. Any other error becomes WORK_EXCEPTION with its message. Clients that request the reason get it in
 * a WORK_WARNING before that.
 */
export async function settleJob<T>(
  log: JobLog,
  job: Pick<WorkerJob, 'handle' | 'payload' | 'sendWarning'>,
  work: () => Promise<T>,
): Promise<T> {
  const started = performance.now();
  try {
    const result = await work();
    log.logger.info(
      `${log.action} (job ${job.handle}): done in ${((performance.now() - started) / 1000).toFixed(1)} s`,
    );
    return result;
  } catch (error) {
    const isExpected = [WorkFailError, ImageError, JobError, ProvenanceError].some(
      (known) => error instanceof known,
    );
    if (error instanceof CancelledError)
      log.logger.warn(`${log.action} was ${error.message} (job ${job.handle})`);
    else if (isExpected) log.logger.error(`${log.action} failed: ${errorLine(error)} (job ${job.handle})`);
    else {
      const unexpected = error instanceof Error ? error : new Error(String(error));
      log.logger.error(`${log.action} failed (job ${job.handle})`, unexpected);
    }
    if (keysOf(job.payload).reason === true) {
      const by = error instanceof CancelledError ? error.by : undefined;
      await job.sendWarning(encodeFailure(errorLine(error), by));
    }
    if ((error instanceof ImageError && !EXCEPTIONS.has(error.code)) || error instanceof ProvenanceError) {
      throw new WorkFailError(error.message, { cause: error });
    }
    throw error;
  }
}

/** Returns the keys of a job's argument. Returns none if it is not a JSON object, which its parser reports. */
export function keysOf(payload: Buffer): Readonly<Record<string, unknown>> {
  try {
    return Object(JSON.parse(payload.toString()));
  } catch {
    return {};
  }
}

/**
 * Returns the warning for clients that request reasons, if `gearadmin --cancel-job` ends their job at our job server.
 */
export function cancelWarning({ payload }: { readonly payload: Buffer }): string | undefined {
  return keysOf(payload).reason === true ? encodeOperatorCancellation() : undefined;
}

/** Formats a text from a job's argument for a message, so that it can neither forge lines of the log nor flood it. */
export function inMessage(text: string): string {
  return visible(text.slice(0, 200));
}

/** Makes a callback that sends progress in whole percent, and only changes. */
export function reportProgress(job: Pick<WorkerJob, 'sendStatus'>): (progress: Progress) => void {
  let last = -1;
  return (progress) => {
    const percent = Math.floor(partDone(progress) * 100);
    if (percent === last) return;
    last = percent;
    job.sendStatus(percent, 100);
  };
}
