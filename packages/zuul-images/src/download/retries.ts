import { ImageError, type Logger } from '@nodepool-builder/image-builder';
import { reportRetry, retryText } from '@nodepool-builder/image-builder/internal';
import { type RetryLimits, RetryPolicy } from '@nodepool-builder/image-builder/plugin';

/** A request that may succeed later. */
export class TransientError extends Error {
  override readonly name: string = 'TransientError';
  /** Value of `Retry-After` in seconds. */
  readonly retryAfter: number;

  constructor(message: string, cause?: unknown, retryAfter: number = 0) {
    super(message, { cause });
    this.retryAfter = retryAfter;
  }
}

/**
 * The server's ranges do not fit together, perhaps because the object changed. The download starts over, without
 * ranges.
 */
export class UnusableRangesError extends TransientError {
  override readonly name = 'UnusableRangesError';
}

/** Default limits; `attempts` counts consecutive failures without new data between them. */
const RETRIES: RetryLimits = {
  attempts: 8,
  firstDelay: 1,
  maxDelay: 120,
  // A longer one is shortened, because the artifact may expire in the meantime.
  maxRetryAfter: 120,
};

/** Counts consecutive failures. A download fails only after failures without progress between them. */
export class Retries {
  readonly #policy: RetryPolicy;
  readonly #logger: Logger | undefined;
  #failures = 0;
  #progress = 0;

  constructor(limits: RetryLimits = RETRIES, logger?: Logger) {
    this.#policy = new RetryPolicy(limits);
    this.#logger = logger;
  }

  /**
   * Waits until the next attempt.
   *
   * @param progress grows with new data; after a failure with new data the count restarts
   * @throws ImageError `download-failed` after the last attempt
   */
  async pause(failure: TransientError, progress: number, signal: AbortSignal): Promise<void> {
    const { attempts, maxRetryAfter } = this.#policy.limits;
    if (progress > this.#progress) this.#failures = 0;
    this.#progress = Math.max(this.#progress, progress);
    this.#failures += 1;
    const delay = this.#policy.delayAfter(this.#failures, Math.min(failure.retryAfter, maxRetryAfter));
    if (delay === undefined) {
      const message = `${failure.message}; all ${attempts} attempts in a row failed, try again later`;
      throw new ImageError('download-failed', message, { cause: failure });
    }
    const retry = { error: failure, attempt: this.#failures + 1, attempts, delay };
    this.#logger?.warn(`${failure.message}; ${retryText(retry)}`);
    reportRetry(retry);
    await this.#policy.sleep(delay, signal).catch(() => signal.throwIfAborted());
  }
}
