import type { Logger } from '@nodepool-builder/image-builder';
import { CloudError, RetryBudget, RetryPolicy } from '@nodepool-builder/image-builder/module-kit';

/** Retries of a whole upload or download. */
export interface TransferRetries {
  /** Attempts in all, at least 1. */
  readonly attempts: number;
  /** Seconds before the second attempt. */
  readonly delay: number;
  /** Seconds from the first failure until the last retry may start, of the upload or of its requests. Default: no limit. */
  readonly limit?: number;
}

export interface RetryOptions extends TransferRetries {
  /** Subject of the log lines. */
  readonly name: string;
  readonly logger: Logger;
  readonly signal: AbortSignal;
}

export const DEFAULT_RETRIES: TransferRetries = { attempts: 3, delay: 5 };

/** Longest delay between two attempts, in seconds. `Retry-After` may be longer; {@link TransferRetries.limit} limits it. */
const LONGEST_DELAY = 300;

/** Wraps the error of an attempt after which no other can succeed; {@link retry} throws the error itself. */
export class FinalError extends Error {
  override readonly name = 'FinalError';

  constructor(cause: unknown) {
    super('no further attempt can succeed', { cause });
  }
}

/** Repeats a transfer after a transient error. `work` gets the number of the attempt, from 1. */
export async function retry<T>(work: (attempt: number) => Promise<T>, options: RetryOptions): Promise<T> {
  const { attempts, delay: firstDelay, limit = Number.POSITIVE_INFINITY, name, logger, signal } = options;
  const longestRetryAfter = Number.POSITIVE_INFINITY;
  const policy = new RetryPolicy({ attempts, firstDelay, longestDelay: LONGEST_DELAY, longestRetryAfter });
  const budget = new RetryBudget(limit);
  let hadConflict = false;
  const mayRetry = (error: unknown): boolean => {
    if (!(error instanceof CloudError)) return false;
    budget.countFrom(budget.failure()); // also for the requests of the next attempt
    // Glance answers 410 when it cleans up after the first half of a replayed body. The next attempt creates another
    // image; a second conflict or 410 has another reason.
    const isConflict = error.code === 'conflict' || error.status === 410;
    const isAllowed = isConflict ? !hadConflict : error.retriable;
    hadConflict ||= isConflict;
    return isAllowed;
  };
  const onRetry = ({ message }: Error, delay: number, attempt: number): void => {
    logger.warn(`${name}: attempt ${attempt} failed, next in ${delay.toFixed(1)} s: ${message}`);
  };
  const onBudgetSpent = (attempt: number): void => {
    logger.warn(
      `${name}: attempt ${attempt} failed; there are no retries ${limit} s after the first failure`,
    );
  };
  try {
    return await budget.run(() => policy.run(work, { signal, mayRetry, onRetry, onBudgetSpent }));
  } catch (error) {
    throw error instanceof FinalError ? error.cause : error;
  }
}
