import { setTimeout as delay } from 'node:timers/promises';

/** Time as HTTP clients see it; tests have their own. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Resolves after the given milliseconds; rejects when the signal aborts. */
  sleep(milliseconds: number, signal?: AbortSignal): Promise<void>;
}

/** The time of this host. */
export const SYSTEM_CLOCK: Clock = {
  now: () => Date.now(),
  sleep: (milliseconds, signal) => delay(milliseconds, undefined, signal === undefined ? {} : { signal }),
};
