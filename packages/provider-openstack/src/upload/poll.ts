import { setTimeout as delay } from 'node:timers/promises';

/** Milliseconds until the second look; each later one waits twice as long as the one before. */
const FIRST_PAUSE = 100;

/** The longest time between two looks, in milliseconds. */
const LONGEST_PAUSE = 2000;

/** Milliseconds between looks, without an end. */
function* pausesBetweenLooks(): Generator<number, never, undefined> {
  for (let pause = FIRST_PAUSE; ; pause = Math.min(pause * 2, LONGEST_PAUSE)) yield pause;
}

/** Looks again and again until there is something to see; no time limit but the signal's. */
export async function until<T>(look: () => Promise<T | undefined>, signal: AbortSignal): Promise<T> {
  const pauses = pausesBetweenLooks();
  for (;;) {
    const seen = await look();
    if (seen !== undefined) return seen;
    await delay(pauses.next().value, undefined, { signal });
  }
}

/** How long {@link poll} goes on. */
export interface PollOptions {
  /** Seconds. */
  readonly timeout: number;
  readonly signal: AbortSignal;
  /** Makes the error for when the time is over. */
  readonly onTimeout: () => Error;
}

/**
 * Looks again and again, and returns the first thing seen that is not `undefined`. The last look begins when the time is
 * over, however long the one before it took.
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
