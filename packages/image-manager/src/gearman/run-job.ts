import { type Client, GearmanError } from '@nodepool-builder/gearman-node';
import { Hopeless } from './hopeless.ts';

/** How long a job may take. */
export interface RunLimits {
  /** Seconds, from when its builder first says how far it is, or else from when it was submitted. */
  readonly time: number;
  /**
   * Leaves the job where it is, for who submits it again; a reason that is {@link Hopeless} withdraws it, as the end of
   * its time does.
   */
  readonly signal: AbortSignal;
}

/** Settings of {@link runJob}. */
export interface RunOptions extends RunLimits {
  /** Takes the job with this handle out of the queue, so that no builder that comes later begins it. */
  readonly withdraw?: (handle: string) => Promise<void>;
}

/** How long a job may wait until a builder begins it, in milliseconds: others may be before it. */
const QUEUE_LIMIT = 24 * 3_600_000;

/** The longest time that a timer of Node's takes, in milliseconds: 24 days. */
const LONGEST_TIMER = 2 ** 31 - 1;

/**
 * Submits a job and waits for its result. A job waits in the queue for a builder, and its time runs from the first
 * WORK_STATUS on; of a builder that sends none nobody knows when it began.
 *
 * @throws JobFailedError, JobExceptionError: the builder's answer
 * @throws JobLostError, ConnectionError: nothing is known of the job
 * @throws GearmanError `job-timeout`, `aborted`
 */
export async function runJob(
  client: Client,
  functionName: string,
  payload: string,
  unique: string,
  { time, signal, withdraw }: RunOptions,
): Promise<Buffer> {
  const late = new AbortController();
  const running = Math.min(time * 1000, LONGEST_TIMER);
  let timer = setTimeout(
    () => {
      late.abort(`waited over ${QUEUE_LIMIT / 3_600_000} hours for a builder; start more of them`);
    },
    Math.min(running + QUEUE_LIMIT, LONGEST_TIMER),
  );
  const job = client.submit(functionName, payload, {
    unique,
    signal: AbortSignal.any([signal, late.signal]),
  });
  try {
    let hasBegun = false;
    for await (const event of job) {
      if (hasBegun || event.type !== 'status') continue;
      hasBegun = true;
      clearTimeout(timer);
      timer = setTimeout(() => {
        late.abort(`took longer than ${time} s; see the builder's log, or raise its time limit`);
      }, running);
    }
    return await job.result;
  } catch (error) {
    if (late.signal.aborted || signal.reason instanceof Hopeless) await job.handle.then(withdraw, () => {});
    if (!late.signal.aborted) throw error;
    throw new GearmanError('job-timeout', `the job ${functionName} ${String(late.signal.reason)}`, {
      cause: error,
    });
  } finally {
    clearTimeout(timer);
  }
}
