import type { JobEvent } from './job-events.ts';

/**
 * A job that was submitted: awaitable for its result, async-iterable for what its worker sends before. A loop over it
 * ends, or throws, as the result does; and it throws ProtocolError for a status whose numbers are none, GearmanError
 * `events-dropped` when it began too late.
 */
export interface Job extends PromiseLike<Buffer>, AsyncIterable<JobEvent> {
  readonly function: string;
  /**
   * The server's name for the job, once a server has accepted it.
   *
   * Rejects as {@link result} does when none accepts it.
   */
  readonly handle: Promise<string>;
  /**
   * The payload of WORK_COMPLETE; that of a background job is empty, and there as soon as a server accepted the job.
   *
   * Rejects with JobFailedError, JobExceptionError, JobLostError, ServerError, ConnectionError (no server can be
   * reached), or GearmanError `job-timeout`, `aborted` or `closed`.
   */
  readonly result: Promise<Buffer>;
}
