import { setTimeout as delay } from 'node:timers/promises';

/** Milliseconds before the second check. Each later interval is twice as long. */
const FIRST_PAUSE = 100;

/** Longest interval between two checks, in milliseconds. */
const LONGEST_PAUSE = 2000;

export interface PollOptions {
  readonly signal: AbortSignal;
  /** Seconds. Default: no timeout. */
  readonly timeout?: number;
  /** Creates the error of a timeout. */
  readonly onTimeout?: () => Error;
}

/**
 * Repeats a check until it returns a value. The last check starts after the timeout, even if the check before it took
 * long.
 */
export async function poll<T>(
  check: () => Promise<T | undefined>,
  { signal, timeout = Number.POSITIVE_INFINITY, onTimeout = () => new Error('timeout') }: PollOptions,
): Promise<T> {
  const end = performance.now() + timeout * 1000;
  for (let pause = FIRST_PAUSE; ; pause = Math.min(pause * 2, LONGEST_PAUSE)) {
    const isLast = performance.now() >= end;
    const value = await check();
    if (value !== undefined) return value;
    if (isLast) throw onTimeout();
    const left = Math.max(end - performance.now(), 0);
    await delay(Math.min(pause, left), undefined, { signal });
  }
}
