import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '@nodepool-builder/image-builder';
import { OpenStackError } from '../openstack-error.ts';
import { RetryBudget } from '../session/retry-budget.ts';

/** How often an upload is tried. */
export interface RetryPolicy {
  /** Tries in all, at least 1. */
  readonly attempts: number;
  /** Seconds before the second try; before each later one twice as long. A cloud may ask for more. */
  readonly delay: number;
  /** Seconds from the first failure until the last retry may begin, of the upload or of its requests. Default: no limit. */
  readonly limit?: number;
}

/** What {@link retry} tells, and what ends it. */
export interface RetryOptions extends RetryPolicy {
  /** What is tried, for messages. */
  readonly name: string;
  readonly logger: Logger;
  readonly signal: AbortSignal;
}

/** Wraps the error of a try after which a further one cannot succeed; {@link retry} throws the error itself. */
export class FinalFailure extends Error {
  override readonly name = 'FinalFailure';
  override readonly cause: unknown;

  constructor(cause: unknown) {
    super('no further try can succeed');
    this.cause = cause;
  }
}

/** Tries again what failed for a reason that may pass. `work` gets the number of the try, from 1. */
export async function retry<T>(work: (attempt: number) => Promise<T>, options: RetryOptions): Promise<T> {
  const { attempts, delay: firstDelay, limit = Number.POSITIVE_INFINITY, name, logger, signal } = options;
  const budget = new RetryBudget(limit);
  let metConflict = false;
  return await budget.run(async () => {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await work(attempt);
      } catch (error) {
        if (error instanceof FinalFailure) throw error.cause;
        if (!(error instanceof OpenStackError)) throw error;
        const failedAt = budget.failure();
        budget.countFrom(failedAt);
        const isConflict = isAboutItsImage(error);
        const mayPass = isConflict ? !metConflict : error.retriable;
        if (attempt >= attempts || signal.aborted || !mayPass) throw error;
        metConflict ||= isConflict;
        const seconds = Math.max(firstDelay * 2 ** (attempt - 1), error.retryAfter ?? 0);
        if (!budget.allows(seconds * 1000, failedAt)) {
          logger.warn(`${name}: try ${attempt} failed, and retries end ${limit} s after the first failure`);
          throw error;
        }
        logger.warn(`${name}: try ${attempt} failed, next in ${seconds} s: ${error.message}`);
        await delay(seconds * 1000, undefined, { signal });
      }
    }
  });
}

/**
 * Whether an error is about the image of its try: a conflict, or the 410 that Glance answers when it clears away what the
 * first half of a replayed body left. The next try makes another image; if that fails in the same way, the reason is
 * another.
 */
function isAboutItsImage({ code, status }: OpenStackError): boolean {
  return code === 'conflict' || status === GONE;
}

const GONE = 410;
