import { types } from 'node:util';
import { JobFailure } from '../errors.ts';
import type { AssignedJob, WorkerJob } from './worker-job.ts';

/** What a handler may return: the payload of WORK_COMPLETE; nothing counts as an empty one. */
// biome-ignore lint/suspicious/noConfusingVoidType: a handler that returns nothing is of type `void`
export type JobResult = string | Uint8Array | void;

/**
 * Does one job. Its result is sent as WORK_COMPLETE; a {@link JobFailure} it throws as WORK_FAIL; anything else it
 * throws as WORK_EXCEPTION with the error's message, one line, no traceback.
 */
export type JobHandler = (job: WorkerJob) => Promise<JobResult> | JobResult;

/** The one final packet of a job. */
export type JobOutcome =
  | { readonly packet: 'WORK_COMPLETE'; readonly data: string | Uint8Array }
  | { readonly packet: 'WORK_FAIL'; readonly error: JobFailure }
  | { readonly packet: 'WORK_EXCEPTION'; readonly data: string; readonly error: unknown };

/** A line longer than this helps nobody. */
const MAX_EXCEPTION_LENGTH = 1000;

/** Runs a handler and reports its outcome. A result over the packet limit ends the job with an exception. */
export async function runHandler(handler: JobHandler, job: AssignedJob): Promise<JobOutcome> {
  try {
    const result: unknown = (await handler(job)) ?? '';
    if (typeof result !== 'string' && !types.isUint8Array(result)) {
      throw new TypeError(
        `the handler of ${job.function} returned ${typeof result}; it may return text or bytes`,
      );
    }
    job.checkResult(result);
    return { packet: 'WORK_COMPLETE', data: result };
  } catch (error) {
    if (error instanceof JobFailure) return { packet: 'WORK_FAIL', error };
    return { packet: 'WORK_EXCEPTION', data: firstLine(error), error };
  }
}

function firstLine(error: unknown): string {
  const text = error instanceof Error ? error.message || error.name : String(error);
  return (text.trim().split(/[\r\n]/, 1)[0] as string).slice(0, MAX_EXCEPTION_LENGTH);
}
