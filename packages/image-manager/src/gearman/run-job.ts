import { hostname } from 'node:os';
import { type Client, GearmanError, JobExceptionError } from '@nodepool-builder/gearman-node';
import { MAX_TIMER_DELAY } from '@nodepool-builder/image-builder/internal';
import { GEARADMIN, withReason } from '../protocol/job-failure.ts';
import { CancelRequest, operatorCancellation } from './cancellation.ts';

/** Abort reason for a task whose image is gone; the task counts as failed. */
export class ImageGoneError extends Error {
  override readonly name = 'ImageGoneError';
}

/** The builder reported success, but its result is incomplete or contradicts the record. */
export class InvalidResultError extends Error {
  override readonly name = 'InvalidResultError';
}

export interface RunLimits {
  /** Time limit in seconds. It starts with the builder's first WORK_STATUS, or else when the job is submitted. */
  readonly time: number;
  /**
   * Stops waiting. The job stays in the queue, so that the next manager can resume it. With {@link ImageGoneError} or
   * {@link CancelRequest} as the reason, and after a timeout, the job is cancelled.
   */
  readonly signal: AbortSignal;
}

export interface RunOptions extends RunLimits {
  /** Cancels the job with this handle, so that no builder starts it later. A builder that runs it also stops. */
  readonly cancel?: (handle: string, canceller: Canceller) => Promise<void>;
}

/** The user who cancels a job. */
export interface Canceller {
  /** `root@host`; the manager adds the reason. */
  readonly by: string;
  /** True if the job may have just started, so that its builder does not yet offer to stop it. */
  readonly isEarly: boolean;
}

/** Maximum time that a job may wait for a builder, in milliseconds, because other jobs may be ahead of it. */
const QUEUE_LIMIT = 24 * 3_600_000;

/**
 * Submits a job and waits for its result. Its time limit starts with the first WORK_STATUS, so that it excludes the
 * time in the queue. If a builder sends none, the limit includes that time.
 *
 * @throws GearmanError `job-failed`, `job-exception`: the builder's result, with its reason if it sends one
 * @throws JobLostError, ConnectionError: the fate of the job is unknown
 * @throws GearmanError `job-timeout`, `aborted`
 */
export async function runJob(
  client: Client,
  functionName: string,
  payload: string,
  unique: string,
  { time, signal, cancel }: RunOptions,
): Promise<Buffer> {
  const timeout = new AbortController();
  const running = Math.min(time * 1000, MAX_TIMER_DELAY);
  let timer = setTimeout(
    () => {
      timeout.abort(`waited over ${QUEUE_LIMIT / 3_600_000} hours for a builder`);
    },
    Math.min(running + QUEUE_LIMIT, MAX_TIMER_DELAY),
  );
  const job = client.submit(functionName, payload, {
    unique,
    signal: AbortSignal.any([signal, timeout.signal]),
  });
  let isRunning = false;
  try {
    for await (const event of job) {
      if (isRunning || event.type !== 'status') continue;
      isRunning = true;
      clearTimeout(timer);
      timer = setTimeout(() => {
        timeout.abort(`took longer than ${time} s`);
      }, running);
    }
    return await job.result;
  } catch (error) {
    clearTimeout(timer);
    const cancellation = await operatorCancellation(error, functionName, client);
    const canceller = cancellerOf(signal, timeout.signal, cancellation !== undefined);
    if (canceller !== undefined) {
      await job.handle.then(
        (handle) => cancel?.(handle, canceller),
        () => {},
      );
    }
    if (!timeout.signal.aborted) throw withReason(cancellation ?? error);
    const remedy = isRunning ? "check the builder's log, or raise its time limit" : 'start more of them';
    throw new GearmanError('job-timeout', `the job ${functionName} ${timeout.signal.reason}; ${remedy}`, {
      cause: error,
    });
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Returns the user who cancels a job that has rejected; undefined if it ends by itself, or the next manager resumes it.
 */
function cancellerOf(
  { reason }: AbortSignal,
  timeout: AbortSignal,
  isCancelledByOperator: boolean,
): Canceller | undefined {
  if (reason instanceof CancelRequest) return { by: reason.by, isEarly: true };
  if (isCancelledByOperator) return { by: GEARADMIN, isEarly: true };
  const manager = `image-manager@${hostname()}`;
  if (timeout.aborted) return { by: `${manager}, because it ${timeout.reason}`, isEarly: false };
  if (reason instanceof ImageGoneError) return { by: `${manager}, as ${reason.message}`, isEarly: false };
  return undefined;
}

/** Codes of errors that end a job; after any other error it may still run. */
const FINAL = new Set(['job-failed', 'job-exception', 'job-timeout']);

/** Returns why a job failed; undefined if it may still run. */
export function jobFailure(error: unknown, signal: AbortSignal): string | undefined {
  const { reason } = signal;
  if (reason instanceof ImageGoneError || reason instanceof CancelRequest) return reason.message;
  if (error instanceof InvalidResultError) return error.message;
  if (!(error instanceof GearmanError) || !FINAL.has(error.code)) return undefined;
  if (!(error instanceof JobExceptionError)) return error.message;
  return error.data.toString('utf8').trimEnd().split('\n').at(-1); // the Python builder sends a whole traceback
}
