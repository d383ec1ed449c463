import { AsyncLocalStorage } from 'node:async_hooks';
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

/** Limits of a {@link RetryPolicy}. */
export interface RetryLimits {
  /** Attempts in all. */
  readonly attempts: number;
  /** Seconds before the second attempt. Each further delay is twice as long; jitter cuts up to half of it. */
  readonly firstDelay: number;
  /** Longest delay in seconds, apart from `Retry-After`. */
  readonly longestDelay: number;
  /** Longest `Retry-After` in seconds; after a longer one there is no retry. */
  readonly longestRetryAfter: number;
}

/** An error that tells whether a retry may succeed. */
export interface RetriableError extends Error {
  readonly retriable: boolean;
  /** Seconds, as in `Retry-After`. */
  readonly retryAfter: number | undefined;
}

/** How to retry one piece of work. */
export interface RetryOptions {
  readonly signal?: AbortSignal | undefined;
  /** Called after each failure. Default: whether the error is retriable. */
  readonly mayRetry?: (error: unknown) => boolean;
  /** Called before each delay, in seconds. */
  readonly onRetry: (error: Error, delay: number, attempt: number) => void;
  /** Called when the {@link RetryBudget} forbids a further attempt. */
  readonly onBudgetSpent?: (attempt: number) => void;
}

/** A failed attempt after which another one follows. */
export interface Retry {
  readonly error: Error;
  /** Number of the next attempt, from 2. */
  readonly attempt: number;
  /** Attempts in all. */
  readonly attempts: number;
  /** Seconds until the next attempt. */
  readonly delay: number;
}

const LISTENER = new AsyncLocalStorage<(retry: Retry | undefined) => void>();

/**
 * Runs an operation, and reports the retries of all its requests, whichever service they go to.
 *
 * @param listener called before each delay, and with `undefined` once a retried request has ended; listeners of
 * operations around this one are called, too
 */
export function watchRetries<T>(
  listener: (retry: Retry | undefined) => void,
  work: () => Promise<T>,
): Promise<T> {
  const outer = LISTENER.getStore();
  const both = (retry: Retry | undefined): void => {
    listener(retry);
    outer?.(retry);
  };
  return LISTENER.run(both, work);
}

/** Reports a retry to the operation that it belongs to. */
export function reportRetry(retry: Retry | undefined): void {
  LISTENER.getStore()?.(retry);
}

/** Retries with exponential back-off, jitter and `Retry-After`, within the {@link RetryBudget} of the operation. */
export class RetryPolicy {
  readonly limits: RetryLimits;
  readonly #clock: Clock;
  readonly #random: () => number;

  /** @param time the clock for delays, and the jitter from 0 to below 1; for tests */
  constructor(
    limits: RetryLimits,
    { clock = SYSTEM_CLOCK, random = Math.random }: { clock?: Clock; random?: () => number } = {},
  ) {
    this.limits = limits;
    this.#clock = clock;
    this.#random = random;
  }

  /** Seconds until the next attempt after so many failures; undefined if there is none. */
  delayAfter(failures: number, retryAfter = 0): number | undefined {
    const { attempts, firstDelay, longestDelay, longestRetryAfter } = this.limits;
    if (failures >= attempts || retryAfter > longestRetryAfter) return undefined;
    const pause = Math.min(longestDelay, firstDelay * 2 ** (failures - 1));
    return Math.max(retryAfter, pause * (1 - this.#random() / 2));
  }

  /** Sleeps until the next attempt. Rejects when the signal aborts. */
  async sleep(seconds: number, signal: AbortSignal | undefined): Promise<void> {
    await this.#clock.sleep(seconds * 1000, signal);
  }

  /**
   * Runs work until it succeeds or a retry is not allowed.
   *
   * @param work its argument is the number of the attempt, from 1
   * @throws the last error
   */
  async run<T>(work: (attempt: number) => Promise<T>, options: RetryOptions): Promise<T> {
    const { signal, mayRetry = isRetriable, onRetry, onBudgetSpent } = options;
    const budget = RetryBudget.current;
    let firstFailure: number | undefined;
    for (let attempt = 1; ; attempt += 1) {
      try {
        const result = await work(attempt);
        if (attempt > 1) reportRetry(undefined);
        return result;
      } catch (error) {
        if (!(error instanceof Error) || !mayRetry(error) || signal?.aborted) throw error;
        firstFailure ??= budget?.failure() ?? 0;
        const pause = this.delayAfter(attempt, (error as Partial<RetriableError>).retryAfter);
        const isSpent = pause !== undefined && budget?.allows(pause * 1000, firstFailure) === false;
        if (isSpent) onBudgetSpent?.(attempt);
        if (pause === undefined || isSpent) {
          budget?.countFrom(firstFailure);
          throw error;
        }
        onRetry(error, pause, attempt);
        reportRetry({ error, attempt: attempt + 1, attempts: this.limits.attempts, delay: pause });
        await this.sleep(pause, signal);
      }
    }
  }
}

function isRetriable(error: unknown): boolean {
  return (error as Partial<RetriableError>).retriable === true;
}

/** Seconds in a `Retry-After` header: a number or a date (RFC 9110, 10.2.3). */
export function retryAfterSeconds(header: string | undefined, now: number): number | undefined {
  if (header === undefined) return undefined;
  if (/^\d+$/.test(header)) return Number(header);
  const date = Date.parse(header);
  return Number.isNaN(date) ? undefined : Math.max(0, (date - now) / 1000);
}

const CURRENT = new AsyncLocalStorage<RetryBudget>();

/**
 * The time for which an operation may retry. All requests of the operation share it, whichever service they go to. It
 * counts from the first failure.
 */
export class RetryBudget {
  readonly #limit: number;
  readonly #now: () => number;
  #firstFailure: number | undefined;

  /**
   * @param seconds from the first failure on in which a retry may begin
   * @param now milliseconds of a clock that never jumps
   */
  constructor(seconds: number, now: () => number = () => performance.now()) {
    this.#limit = seconds * 1000;
    this.#now = now;
  }

  /** The budget of the current operation; undefined if only the number of attempts is limited. */
  static get current(): RetryBudget | undefined {
    return CURRENT.getStore();
  }

  run<T>(work: () => Promise<T>): Promise<T> {
    return CURRENT.run(this, work);
  }

  /** Time of a failure, an argument of the other methods. */
  failure(): number {
    return this.#now();
  }

  /** Whether a retry may begin after a pause, for work that first failed at that time. */
  allows(pause: number, firstFailure: number): boolean {
    return this.#now() + pause - (this.#firstFailure ?? firstFailure) < this.#limit;
  }

  /** Counts from that failure, unless the operation had failed before. */
  countFrom(firstFailure: number): void {
    this.#firstFailure ??= firstFailure;
  }
}
