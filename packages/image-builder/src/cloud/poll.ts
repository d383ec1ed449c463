import { setTimeout as delay } from 'node:timers/promises';
import { cloudError } from '../cloud-error.ts';

/** Settings of {@link poll}. */
export interface PollOptions {
  readonly signal: AbortSignal;
  /**
   * Max seconds between two looks. The first pause is a twentieth of it, and each later one twice as long. Default 2.
   */
  readonly interval?: number;
  /** Seconds. Default: no limit. */
  readonly timeout?: number;
  /** Subject of messages: `provider west: snapshot snap-1`. */
  readonly subject?: string;
  /** Creates the error after the timeout. Default: `image-timeout`. */
  readonly onTimeout?: () => Error;
}

/**
 * Checks repeatedly until there is a result. The last check starts after the timeout, even if the previous one took
 * long.
 *
 * @throws CloudError `image-timeout`, or the signal's reason
 */
export async function poll<T>(
  look: () => Promise<T | undefined>,
  { signal, interval = 2, timeout = Number.POSITIVE_INFINITY, subject = '', onTimeout }: PollOptions,
): Promise<T> {
  const end = performance.now() + timeout * 1000;
  for (let pause = interval * 50; ; pause = Math.min(pause * 2, interval * 1000)) {
    const isLast = performance.now() >= end;
    const result = await look();
    if (result !== undefined) return result;
    if (isLast) {
      const reason = `not ready after ${timeout} s (image-import-timeout)`;
      throw onTimeout?.() ?? cloudError('image-timeout', subject, reason);
    }
    await delay(Math.min(pause, Math.max(end - performance.now(), 0)), undefined, { signal });
  }
}
