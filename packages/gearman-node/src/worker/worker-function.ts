import { GearmanError } from '../errors.ts';
import type { JobHandler } from './job-outcome.ts';

/** A function whose jobs may run for a limited time. */
export interface TimedFunction {
  readonly handler: JobHandler;
  /**
   * Milliseconds that a job may run, from 1 on. Then the job's signal aborts with `job-timeout`. Servers are told as
   * well (CAN_DO_TIMEOUT) when the function is registered: the protocol lets them fail the job then, but gearmand
   * gives it to another worker, and with several jobs of one connection at a time it may take the wrong one.
   */
  readonly timeout: number;
}

/** What a worker does for a function: its handler, or that and a time limit. */
export type WorkerFunction = JobHandler | TimedFunction;

/** The longest time that setTimeout takes. */
const MAX_TIMEOUT = 2 ** 31 - 1;

/** @throws GearmanError `invalid-argument` for a time limit that is no whole number from 1 on */
export function checkWorkerFunction(name: string, declared: WorkerFunction): void {
  const timeout = timeoutOf(declared);
  if (timeout === undefined || (Number.isInteger(timeout) && timeout >= 1 && timeout <= MAX_TIMEOUT)) return;
  throw new GearmanError(
    'invalid-argument',
    `the timeout of ${name}, ${timeout}, is no whole number of milliseconds from 1 to ${MAX_TIMEOUT}`,
  );
}

export function handlerOf(declared: WorkerFunction): JobHandler {
  return typeof declared === 'function' ? declared : declared.handler;
}

/** Milliseconds, or undefined for a function without a limit. */
export function timeoutOf(declared: WorkerFunction): number | undefined {
  return typeof declared === 'function' ? undefined : declared.timeout;
}
