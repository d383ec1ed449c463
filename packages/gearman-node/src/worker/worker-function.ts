import { checkNames, MAX_TIMER_DELAY, refuse } from '../argument-checks.ts';
import { WorkFailError } from '../errors.ts';
import type { JobHandler } from './worker-job.ts';

/** A function with a time limit. */
export interface TimedFunction {
  readonly handler: JobHandler;
  /**
   * Time limit of a job in milliseconds, at least 1. The job's signal then aborts with `job-timeout`. The limit is also
   * registered with the servers (CAN_DO_TIMEOUT), and the protocol lets them fail the job. gearmand gives it to another
   * worker, and may choose the wrong job if several run on one connection.
   */
  readonly timeout: number;
}

/** Implementation of a function: a handler, optionally with a time limit. */
export type WorkerFunction = JobHandler | TimedFunction;

/**
 * @throws GearmanError `invalid-argument` without a handler, or if the time limit is not a whole number of at least 1
 */
export function checkWorkerFunction(name: string, declared: WorkerFunction): void {
  if (typeof declared === 'function') return;
  if (typeof declared?.handler !== 'function') {
    refuse(`handler of ${name}`, declared, 'give a function, or an object with handler and timeout');
  }
  checkNames(name, declared, { handler: true, timeout: true });
  const { timeout } = declared;
  if (Number.isInteger(timeout) && timeout >= 1 && timeout <= MAX_TIMER_DELAY) return;
  const remedy = `give a whole number of milliseconds from 1 to ${MAX_TIMER_DELAY}`;
  refuse(`timeout of ${name}`, timeout, remedy);
}

export function handlerOf(declared: WorkerFunction): JobHandler {
  return typeof declared === 'function' ? declared : declared.handler;
}

export function timeoutOf(declared: WorkerFunction): number | undefined {
  return typeof declared === 'function' ? undefined : declared.timeout;
}

/** Handler of a function that a server assigns although the worker does not offer it. */
export const notOffered: JobHandler = (job) => {
  throw new WorkFailError(`this worker does not offer ${job.function}`);
};
