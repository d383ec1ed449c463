import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '@nodepool-builder/image-builder';
import { OpenStackError } from '../openstack-error.ts';

/** How often an upload is tried. */
export interface RetryPolicy {
  /** Tries in all, at least 1. */
  readonly attempts: number;
  /** Seconds before the second try; before each later one twice as long. A cloud may ask for more. */
  readonly delay: number;
}

/** What {@link retry} tells, and what ends it. */
export interface RetryOptions extends RetryPolicy {
  /** What is tried, for messages. */
  readonly name: string;
  readonly logger: Logger;
  readonly signal: AbortSignal;
}

/** Tries again what failed for a reason that may pass. `work` gets the number of the try, from 1. */
export async function retry<T>(
  work: (attempt: number) => Promise<T>,
  { attempts, delay: firstDelay, name, logger, signal }: RetryOptions,
): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work(attempt);
    } catch (error) {
      if (attempt >= attempts || signal.aborted || !mayPass(error)) throw error;
      const seconds = Math.max(firstDelay * 2 ** (attempt - 1), error.retryAfter ?? 0);
      logger.warn(`${name}: try ${attempt} of ${attempts} failed, next in ${seconds} s: ${error.message}`);
      await delay(seconds * 1000, undefined, { signal });
    }
  }
}

/**
 * A conflict is about the image of this try, and so is 410, which Glance answers when it clears away what the first
 * half of a replayed body left; the next try makes another image.
 */
function mayPass(error: unknown): error is OpenStackError {
  if (!(error instanceof OpenStackError)) return false;
  return error.retriable || error.code === 'conflict' || error.status === GONE;
}

const GONE = 410;
