import type { Logger } from '@nodepool-builder/image-builder';
import { RetryBudget, RetryPolicy } from '@nodepool-builder/image-builder/module-kit';
import { OpenStackError } from '../openstack-error.ts';

/** Retries of a whole upload or download. */
export interface TransferRetries {
  /** Attempts in all, at least 1. */
  readonly attempts: number;
  /** Seconds before the second attempt. */
  readonly delay: number;
  /** Seconds from the first failure until the last retry may start, of the upload or of its requests. Default: no limit. */
  readonly limit?: number;
}

/** Longest delay between two attempts, in seconds. `Retry-After` may be longer; {@link TransferRetries.limit} limits it. */
const LONGEST_DELAY = 300;

/** Options of {@link retry}. */
export interface RetryOptions extends TransferRetries {
  /** Subject of the log lines. */
  readonly name: string;
  readonly logger: Logger;
  readonly signal: AbortSignal;
}

/** Wraps the error of an attempt after which no other can succeed; {@link retry} throws the error itself. */
export class FinalFailure extends Error {
  override readonly name = 'FinalFailure';
  override readonly cause: unknown;

  constructor(cause: unknown) {
    super('no further try can succeed');
    this.cause = cause;
  }
}

/** Repeats a transfer after a transient error. `work` gets the number of the attempt, from 1. */
export async function retry<T>(work: (attempt: number) => Promise<T>, options: RetryOptions): Promise<T> {
  const { attempts, delay: firstDelay, limit = Number.POSITIVE_INFINITY, name, logger, signal } = options;
  const longestRetryAfter = Number.POSITIVE_INFINITY;
  const policy = new RetryPolicy({ attempts, firstDelay, longestDelay: LONGEST_DELAY, longestRetryAfter });
  const budget = new RetryBudget(limit);
  let metConflict = false;
  const mayRetry = (error: unknown): boolean => {
    if (!(error instanceof OpenStackError)) return false;
    budget.countFrom(budget.failure()); // also for the requests of the next attempt
    const isConflict = isAboutItsImage(error);
    const isAllowed = isConflict ? !metConflict : error.retriable;
    metConflict ||= isConflict;
    return isAllowed;
  };
  try {
    return await budget.run(() =>
      policy.run(work, {
        signal,
        mayRetry,
        onRetry: ({ message }, delay, attempt) =>
          logger.warn(`${name}: try ${attempt} failed, next in ${delay.toFixed(1)} s: ${message}`),
        onBudgetSpent: (attempt) =>
          logger.warn(`${name}: try ${attempt} failed, and retries end ${limit} s after the first failure`),
      }),
    );
  } catch (error) {
    throw error instanceof FinalFailure ? error.cause : error;
  }
}

/**
 * Whether an error concerns only the image of its attempt: a conflict, or the 410 with which Glance cleans up after the
 * first half of a replayed body. The next attempt creates another image; a second such error has another reason.
 */
function isAboutItsImage({ code, status }: OpenStackError): boolean {
  return code === 'conflict' || status === GONE;
}

const GONE = 410;
