import type { Logger } from '@nodepool-builder/image-builder';
import { type Retry, RetryBudget, retryText } from '@nodepool-builder/image-builder/internal';
import { CloudError, RetryPolicy } from '@nodepool-builder/image-builder/plugin';

/** Retries of a whole upload or download. */
export interface TransferRetries {
  /** Max attempts, at least 1. */
  readonly attempts: number;
  /** Seconds before the second attempt. */
  readonly delay: number;
  /** Seconds from the first failure until the last retry of the upload or its requests may start. Default: no limit. */
  readonly limit?: number;
}

export interface RetryOptions extends TransferRetries {
  /** Subject of the log lines. */
  readonly name: string;
  readonly logger: Logger;
  readonly signal: AbortSignal;
}

export const DEFAULT_RETRIES: TransferRetries = { attempts: 3, delay: 5 };

/**
 * Max delay between two attempts, in seconds. `Retry-After` may exceed it; {@link TransferRetries.limit} limits both.
 */
const MAX_DELAY = 300;

/** Wraps an error after which no further attempt can succeed; {@link retry} throws the wrapped error. */
export class FinalError extends Error {
  override readonly name = 'FinalError';

  constructor(cause: unknown) {
    super('no further attempt can succeed', { cause });
  }
}

/** Retries a transfer after a transient error. `work` receives the number of the attempt, from 1. */
export async function retry<T>(work: (attempt: number) => Promise<T>, options: RetryOptions): Promise<T> {
  const { attempts, delay: firstDelay, limit = Number.POSITIVE_INFINITY, name, logger, signal } = options;
  const maxRetryAfter = Number.POSITIVE_INFINITY;
  const policy = new RetryPolicy({ attempts, firstDelay, maxDelay: MAX_DELAY, maxRetryAfter });
  const budget = new RetryBudget(limit);
  let hadConflict = false;
  const mayRetry = (error: unknown): boolean => {
    if (!(error instanceof CloudError)) return false;
    budget.countFrom(budget.failure()); // The budget also limits requests of the next attempt.
    // Glance responds with 410 when it cleans up after the first half of a replayed body. The next attempt creates
    // another image. A second conflict or 410 has another cause.
    const isConflict = error.code === 'conflict' || error.status === 410;
    const isAllowed = isConflict ? !hadConflict : error.retriable;
    hadConflict ||= isConflict;
    return isAllowed;
  };
  const onRetry = (next: Retry): void => {
    logger.warn(`${name} failed; ${retryText(next)}: ${next.error.message}`);
  };
  const onBudgetSpent = (attempt: number): void => {
    logger.warn(
      `${name}: attempt ${attempt} failed; no retry, because ${limit} s have passed since the first failure`,
    );
  };
  try {
    return await budget.run(() => policy.run(work, { signal, mayRetry, onRetry, onBudgetSpent }));
  } catch (error) {
    throw error instanceof FinalError ? error.cause : error;
  }
}
