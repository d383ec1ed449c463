import { setTimeout as delay } from 'node:timers/promises';
import { CloudError } from '../cloud-error.ts';

/** Settings of {@link poll}. */
export interface PollOptions {
  /** Subject of the wait, such as `provider west: snapshot snap-1`. */
  readonly subject: string;
  /** Timeout in seconds. */
  readonly timeout: number;
  /** Maximum seconds between two checks. The first pause is a twentieth of it, and each later one twice as long. */
  readonly interval: number;
  readonly signal: AbortSignal;
  /** Reason after the timeout. */
  readonly reason?: () => string;
}

/**
 * Checks repeatedly until there is a result. The last check starts after the timeout, even if the previous one took
 * long.
 *
 * @throws CloudError `image-timeout`, or the signal's reason
 */
export async function poll<T>(
  look: () => Promise<T | undefined>,
  { subject, timeout, interval, signal, reason }: PollOptions,
): Promise<T> {
  const end = performance.now() + timeout * 1000;
  for (let pause = interval * 50; ; pause = Math.min(pause * 2, interval * 1000)) {
    const isLast = performance.now() >= end;
    const result = await look();
    if (result !== undefined) return result;
    if (isLast) {
      const text = reason?.() ?? `not ready after ${timeout} s (image-import-timeout)`;
      throw new CloudError('image-timeout', subject, text);
    }
    await delay(Math.min(pause, Math.max(end - performance.now(), 0)), undefined, { signal });
  }
}
