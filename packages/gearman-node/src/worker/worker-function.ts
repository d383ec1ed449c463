import { MAX_TIMER_DELAY, refuse } from '../argument-checks.ts';
import type { JobHandler } from './worker-job.ts';

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

/** @throws GearmanError `invalid-argument` without a handler, or if the time limit is not a whole number of at least 1 */
export function checkWorkerFunction(name: string, declared: WorkerFunction): void {
  if (typeof declared === 'function') return;
  if (typeof declared?.handler !== 'function') {
    refuse(`handler of ${name}`, declared, 'give a function, or an object with handler and timeout');
  }
  const { timeout } = declared;
  if (Number.isInteger(timeout) && timeout >= 1 && timeout <= MAX_TIMER_DELAY) return;
  const remedy = `give a whole number of milliseconds from 1 to ${MAX_TIMER_DELAY}`;
  refuse(`timeout of ${name}`, timeout, remedy);
}

export function handlerOf(declared: WorkerFunction): JobHandler {
  return typeof declared === 'function' ? declared : declared.handler;
}

/** Milliseconds, or undefined for a function without a limit. */
export function timeoutOf(declared: WorkerFunction): number | undefined {
  return typeof declared === 'function' ? undefined : declared.timeout;
}
