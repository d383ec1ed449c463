import { setTimeout as delay } from 'node:timers/promises';
import { CloudError } from '@nodepool-builder/image-builder/module-kit';

export interface PollOptions {
  /** What is waited for: `provider aws: snapshot snap-1`. */
  readonly subject: string;
  /** Seconds. */
  readonly timeout: number;
  /** Seconds between two looks, at most. */
  readonly interval: number;
  readonly signal: AbortSignal;
}

/**
 * Looks again and again until there is a result.
 *
 * @throws CloudError `image-timeout`, or the signal's reason
 */
export async function poll<T>(
  look: () => Promise<T | undefined>,
  { subject, timeout, interval, signal }: PollOptions,
): Promise<T> {
  const end = performance.now() + timeout * 1000;
  for (let pause = interval / 8; ; pause = Math.min(interval, pause * 2)) {
    const result = await look();
    if (result !== undefined) return result;
    if (performance.now() > end) {
      throw new CloudError('image-timeout', subject, `not ready after ${timeout} s (image-import-timeout)`);
    }
    await delay(pause * 1000, undefined, { signal });
  }
}
