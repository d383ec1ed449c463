import { AsyncLocalStorage } from 'node:async_hooks';
import { setTimeout as delay } from 'node:timers/promises';

/** Clock of HTTP clients. Tests replace it. */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number;
  /** Resolves after the given milliseconds; rejects when the signal aborts. */
  sleep(milliseconds: number, signal?: AbortSignal): Promise<void>;
}

/** The clock of this host. */
export const SYSTEM_CLOCK: Clock = {
  now: () => Date.now(),
  sleep: (milliseconds, signal) => delay(milliseconds, undefined, signal === undefined ? {} : { signal }),
};

/** Limits of a {@link RetryPolicy}. */
export interface RetryLimits {
  /** Total number of attempts. */
  readonly attempts: number;
  /** Seconds before the second attempt. Each further delay is twice as long; jitter cuts up to half of it. */
  readonly firstDelay: number;
  /** Maximum delay in seconds, apart from `Retry-After`. */
  readonly maxDelay: number;
  /** Maximum `Retry-After` in seconds. After a longer one there is no retry. */
  readonly maxRetryAfter: number;
}

/** An error that shows whether a retry may succeed. */
export interface RetriableError extends Error {
  readonly retriable: boolean;
  /** Value of `Retry-After` in seconds. */
  readonly retryAfter: number | undefined;
}

/** Settings of the retries of one piece of work. */
export interface RetryOptions {
  readonly signal?: AbortSignal | undefined;
  /** Called after each failure; returns whether to retry. Default: the error is retriable. */
  readonly mayRetry?: (error: unknown) => boolean;
  /** Called before each delay. */
  readonly onRetry?: (retry: Retry) => void;
  /** Called when the retries of the operation have taken too long for a further attempt. */
  readonly onBudgetSpent?: (attempt: number) => void;
}

/** A failed attempt after which another one follows. */
export interface Retry {
  readonly error: Error;
  /** Number of the next attempt, from 2. */
  readonly attempt: number;
  /** Total number of attempts. */
  readonly attempts: number;
  /** Seconds until the next attempt. */
  readonly delay: number;
}

/** Formats the next attempt: `attempt 2 of 6`, or `attempt 2` if only the time is limited. */
export function attemptText({ attempt, attempts }: Pick<Retry, 'attempt' | 'attempts'>): string {
  return Number.isFinite(attempts) ? `attempt ${attempt} of ${attempts}` : `attempt ${attempt}`;
}

/** Formats a log line's announcement of the next attempt: `retrying in 11.4 s (attempt 5 of 6)`. */
export function retryText(retry: Pick<Retry, 'attempt' | 'attempts' | 'delay'>): string {
  return `retrying in ${retry.delay.toFixed(1)} s (${attemptText(retry)})`;
}

const LISTENER = new AsyncLocalStorage<(retry: Retry | undefined) => void>();

/**
 * Runs an operation, and reports the retries of all its requests, to any service.
 *
 * @param listener called before each delay, and with `undefined` once a retried request has ended; listeners of
 * enclosing operations are also called
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

/** Reports a retry to the operation to which it belongs. */
export function reportRetry(retry: Retry | undefined): void {
  LISTENER.getStore()?.(retry);
}

/** Retries with exponential back-off, jitter and `Retry-After`, within the time that the operation has for retries. */
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

  /** Returns the seconds until the next attempt after a number of failures; undefined if there is none. */
  delayAfter(failures: number, retryAfter = 0): number | undefined {
    const { attempts, firstDelay, maxDelay, maxRetryAfter } = this.limits;
    if (failures >= attempts || retryAfter > maxRetryAfter) return undefined;
    const pause = Math.min(maxDelay, firstDelay * 2 ** (failures - 1));
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
        const retry = { error, attempt: attempt + 1, attempts: this.limits.attempts, delay: pause };
        onRetry?.(retry);
        reportRetry(retry);
        await this.sleep(pause, signal);
      }
    }
  }
}

function isRetriable(error: unknown): boolean {
  return (error as Partial<RetriableError>).retriable === true;
}

/** Parses a `Retry-After` header to seconds: a number or a date (RFC 9110, 10.2.3). */
export function retryAfterSeconds(header: string | undefined, now: number): number | undefined {
  if (header === undefined) return undefined;
  if (/^\d+$/.test(header)) return Number(header);
  const date = Date.parse(header);
  return Number.isNaN(date) ? undefined : Math.max(0, (date - now) / 1000);
}

const CURRENT = new AsyncLocalStorage<RetryBudget>();

/**
 * The time during which an operation may retry. All its requests share it, to any service. It starts with the first
 * failure.
 */
export class RetryBudget {
  readonly #limit: number;
  readonly #now: () => number;
  #firstFailure: number | undefined;

  /**
   * @param seconds time after the first failure in which a retry may begin
   * @param now milliseconds of a monotonic clock
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

  /** Returns the time of a failure, for the other methods. */
  failure(): number {
    return this.#now();
  }

  /** Returns whether a retry may begin after a pause, for work that first failed at that time. */
  allows(pause: number, firstFailure: number): boolean {
    return this.#now() + pause - (this.#firstFailure ?? firstFailure) < this.#limit;
  }

  /** Starts the time at that failure, unless the operation had failed before. */
  countFrom(firstFailure: number): void {
    this.#firstFailure ??= firstFailure;
  }
}
