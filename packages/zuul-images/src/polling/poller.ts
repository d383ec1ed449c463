import type { Logger } from '@nodepool-builder/image-builder';
import { SYSTEM_CLOCK } from '@nodepool-builder/image-builder/internal';
import type { Clock } from '@nodepool-builder/image-builder/plugin';

/** Maximum reduction of a pause, as a fraction of the interval, so that many pollers do not poll at the same time. */
const JITTER = 0.2;

/** Maximum pause after failures in milliseconds, unless the interval is longer. */
const MAX_PAUSE = 900_000;

/** Minimum pause between two polls in milliseconds, regardless of wake-ups. */
const MIN_PAUSE = 1_000;

/** Settings of {@link startPoller}. */
export interface PollerOptions {
  /** Subject of the polls in messages: `noble`. */
  readonly name: string;
  /** Polls once. Its errors are logged, and the poll is retried. */
  readonly poll: (signal: AbortSignal) => Promise<void>;
  /** Maximum milliseconds between the end of a successful poll and the next poll. */
  readonly interval: number;
  readonly logger: Logger;
  readonly clock?: Clock;
  /** Jitter from 0 to below 1. */
  readonly random?: () => number;
}

/** A running poller. */
export interface Poller {
  /** Causes a poll now, or after the current one. */
  wake(): void;
  /** Aborts the current poll, and resolves when it has ended. */
  close(): Promise<void>;
}

/** Polls at once, then at intervals and when it is woken, and less often while polls fail. */
export function startPoller({
  name,
  poll,
  interval,
  logger,
  clock = SYSTEM_CLOCK,
  random = Math.random,
}: PollerOptions): Poller {
  const closing = new AbortController();
  const { signal } = closing;
  let woken = Promise.withResolvers<void>();
  /** Sleeps until the end of the pause, or until the poller is woken. */
  const rest = async (pause: number): Promise<void> => {
    const over = new AbortController();
    const either = AbortSignal.any([signal, over.signal]);
    const sleep = (milliseconds: number): Promise<void> =>
      clock.sleep(milliseconds, either).catch(() => undefined);
    const shortest = Math.min(pause, MIN_PAUSE);
    await sleep(shortest);
    await Promise.race([sleep(pause - shortest), woken.promise]);
    over.abort();
  };
  const run = async (): Promise<void> => {
    for (let failures = 0; !signal.aborted; ) {
      woken = Promise.withResolvers();
      try {
        await poll(signal);
        failures = 0;
      } catch (error) {
        if (signal.aborted) return;
        logger.warn(`polling for new builds of ${name} failed: ${(error as Error).message}`);
        failures += 1;
      }
      const longest = Math.max(interval, MAX_PAUSE);
      await rest(Math.min(longest, interval * 2 ** failures) * (1 - random() * JITTER));
    }
  };
  const running = run();
  return {
    wake: () => woken.resolve(),
    close: async () => {
      closing.abort();
      await running;
    },
  };
}
