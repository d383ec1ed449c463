import { setTimeout as delay } from 'node:timers/promises';

/** Milliseconds before the second check. Each later interval is twice as long. */
const FIRST_PAUSE = 100;

/** Longest interval between two checks, in milliseconds. */
const LONGEST_PAUSE = 2000;

/** Milliseconds between checks. */
function* pausesBetweenLooks(): Generator<number, never, undefined> {
  for (let pause = FIRST_PAUSE; ; pause = Math.min(pause * 2, LONGEST_PAUSE)) yield pause;
}

/** Repeats a check until it returns a value. Only the signal limits the time. */
export async function until<T>(look: () => Promise<T | undefined>, signal: AbortSignal): Promise<T> {
  const pauses = pausesBetweenLooks();
  for (;;) {
    const seen = await look();
    if (seen !== undefined) return seen;
    await delay(pauses.next().value, undefined, { signal });
  }
}

/** Limits of {@link poll}. */
export interface PollOptions {
  /** Seconds. */
  readonly timeout: number;
  readonly signal: AbortSignal;
  /** Creates the error of a timeout. */
  readonly onTimeout: () => Error;
}

/**
 * Repeats a check until it returns a value. The last check starts after the timeout, even if the check before it took
 * long.
 */
export async function poll<T>(
  look: () => Promise<T | undefined>,
  { timeout, signal, onTimeout }: PollOptions,
): Promise<T> {
  const end = performance.now() + timeout * 1000;
  const pauses = pausesBetweenLooks();
  for (;;) {
    const isLast = performance.now() >= end;
    const seen = await look();
    if (seen !== undefined) return seen;
    if (isLast) throw onTimeout();
    const left = Math.max(end - performance.now(), 0);
    await delay(Math.min(pauses.next().value, left), undefined, { signal });
  }
}
