import type { Logger } from '@nodepool-builder/image-builder';
import type { Clock } from './clock.ts';
import { ZuulError } from './zuul-error.ts';

/** How often a request is sent at most. */
const TRIES = 4;

/** Milliseconds before the second try; each further pause is twice as long, and up to half of it is cut at random. */
const FIRST_PAUSE = 1_000;

/** The longest `Retry-After`, in seconds, that is waited for within one call. */
const LONGEST_RETRY_AFTER = 60;

/** What {@link retry} needs. */
export interface RetryOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  /** 0 to below 1. */
  readonly random: () => number;
  readonly signal: AbortSignal;
}

/** Runs `attempt` until it succeeds, fails for good, or was tried four times; then its last error is thrown. */
export async function retry<T>(
  attempt: () => Promise<T>,
  { clock, logger, random, signal }: RetryOptions,
): Promise<T> {
  for (let tried = 1; ; tried += 1) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof ZuulError) || !error.retriable || tried === TRIES) throw error;
      const { retryAfter = 0 } = error;
      if (retryAfter > LONGEST_RETRY_AFTER) throw error;
      const pause = Math.max(retryAfter * 1000, FIRST_PAUSE * 2 ** (tried - 1) * (1 - random() / 2));
      logger.info(`${error.message}; again in ${(pause / 1000).toFixed(1)} s (try ${tried} of ${TRIES})`);
      await clock.sleep(pause, signal);
    }
  }
}
