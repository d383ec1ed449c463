import type { Logger } from '@nodepool-builder/image-builder';
import { OpenStackError } from '../openstack-error.ts';
import type { Clock } from './clock.ts';
import { RetryBudget } from './retry-budget.ts';

/** How long a session goes on trying. */
export interface RetryLimits {
  /** How often a request is sent at most. */
  readonly tries: number;
  /** Seconds before the second try; each further pause is twice as long, and up to half of it is cut at random. */
  readonly firstPause: number;
  /** The longest pause of our own, in seconds. */
  readonly longestPause: number;
  /** The longest `Retry-After` that is waited for, in seconds; a longer one ends the tries. */
  readonly longestRetryAfter: number;
}

export const DEFAULT_RETRY_LIMITS: RetryLimits = {
  tries: 6,
  firstPause: 1,
  longestPause: 30,
  longestRetryAfter: 120,
};

/** What a {@link Patience} needs. */
export interface PatienceOptions {
  readonly limits: RetryLimits;
  readonly clock: Clock;
  readonly logger: Logger;
  /** 0 to below 1. */
  readonly random: () => number;
}

/** Retries after transient errors, within the {@link RetryBudget} of the operation under way. */
export class Patience {
  readonly #limits: RetryLimits;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #random: () => number;

  constructor({ limits, clock, logger, random }: PatienceOptions) {
    this.#limits = limits;
    this.#clock = clock;
    this.#logger = logger;
    this.#random = random;
  }

  /** Runs `attempt` until it succeeds, fails for good, or the limits are reached; then its last error is thrown. */
  async retry<T>(
    attempt: () => Promise<T>,
    { again = () => true, signal }: { again?: (error: OpenStackError) => boolean; signal?: AbortSignal },
  ): Promise<T> {
    const budget = RetryBudget.current;
    let firstFailure: number | undefined;
    for (let tried = 1; ; tried += 1) {
      try {
        return await attempt();
      } catch (error) {
        if (!(error instanceof OpenStackError) || !error.retriable || !again(error)) throw error;
        firstFailure ??= budget?.failure() ?? 0;
        const pause = this.#pause(tried, error.retryAfter);
        const mayRetry = pause !== undefined && budget?.allows(pause * 1000, firstFailure) !== false;
        if (tried >= this.#limits.tries || !mayRetry) {
          budget?.countFrom(firstFailure);
          throw error;
        }
        this.#logger.warn(
          `${error.message}; again in ${pause.toFixed(1)} s (try ${tried} of ${this.#limits.tries})`,
        );
        await this.#clock.sleep(pause * 1000, signal);
      }
    }
  }

  #pause(tried: number, retryAfter = 0): number | undefined {
    if (retryAfter > this.#limits.longestRetryAfter) return undefined;
    const full = Math.min(this.#limits.longestPause, this.#limits.firstPause * 2 ** (tried - 1));
    return Math.max(retryAfter, full * (1 - this.#random() / 2));
  }
}
