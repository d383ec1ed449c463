import { setTimeout as delay } from 'node:timers/promises';
import { ImageError, type Logger } from '@nodepool-builder/image-builder';
import type { TransientFailure } from './transient-failure.ts';

/** How long to go on when a server fails. */
export interface RetryPolicy {
  /** Failures in a row, with nothing new between them, after which to give up. */
  readonly attempts: number;
  /** Milliseconds before the first new attempt; each further pause is twice as long. */
  readonly firstPause: number;
  /** The longest pause in milliseconds, a server's Retry-After included. */
  readonly longestPause: number;
}

/** Failures in a row of one who fetches. */
export class Retries {
  readonly #policy: RetryPolicy;
  readonly #logger: Logger | undefined;
  #failures = 0;
  #progress = 0;

  constructor(policy: RetryPolicy, logger: Logger | undefined) {
    this.#policy = policy;
    this.#logger = logger;
  }

  /**
   * Waits until it is time for a new attempt.
   *
   * @param progress grows with all that is won; after a failure that won something the count begins anew
   * @throws ImageError `download-failed` when there were enough of them
   * @throws the signal's reason
   */
  async pause(failure: TransientFailure, progress: number, signal: AbortSignal): Promise<void> {
    const { attempts, firstPause, longestPause } = this.#policy;
    if (progress > this.#progress) this.#failures = 0;
    this.#progress = Math.max(this.#progress, progress);
    this.#failures += 1;
    if (this.#failures >= attempts) {
      const message = `${failure.message}; that was attempt ${attempts} in a row without success, try again later`;
      throw new ImageError('download-failed', message, { cause: failure });
    }
    // Jitter: connections that were cut together do not come back together.
    const own = firstPause * 2 ** (this.#failures - 1) * (0.5 + Math.random() / 2);
    const pause = Math.min(longestPause, Math.max(own, failure.retryAfter ?? 0));
    this.#logger?.warn(`${failure.message}; the next attempt is in ${(pause / 1000).toFixed(1)} s`);
    await delay(pause, undefined, { signal }).catch(() => signal.throwIfAborted());
  }
}
