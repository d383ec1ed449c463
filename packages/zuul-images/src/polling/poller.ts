import type { Logger } from '@nodepool-builder/image-builder';
import { SYSTEM_CLOCK } from '@nodepool-builder/image-builder/internal';
import type { Clock } from '@nodepool-builder/image-builder/plugin';

/** Maximum reduction of a pause, as a fraction of the interval, so that many pollers do not poll at the same time. */
const JITTER = 0.2;

/** Maximum pause after failures in milliseconds, unless the interval is longer. */
const MAX_PAUSE = 900_000;

/** Minimum pause between two polls in milliseconds, regardless of wake-ups. */
const MIN_PAUSE = 1_000;

/** Settings of a {@link Poller}. */
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

/** Polls at once, then at intervals and when it is woken, and less often while polls fail. */
export class Poller {
  readonly #options: PollerOptions;
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #closing = new AbortController();
  readonly #running: Promise<void>;
  #woken = Promise.withResolvers<void>();

  constructor(options: PollerOptions) {
    this.#options = options;
    this.#clock = options.clock ?? SYSTEM_CLOCK;
    this.#random = options.random ?? Math.random;
    this.#running = this.#run(this.#closing.signal);
  }

  /** Causes a poll now, or after the current one. */
  wake(): void {
    this.#woken.resolve();
  }

  /** Aborts the current poll, and resolves when it has ended. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#running;
  }

  async #run(signal: AbortSignal): Promise<void> {
    for (let failures = 0; !signal.aborted; ) {
      this.#woken = Promise.withResolvers();
      failures = (await this.#poll(signal)) ? 0 : failures + 1;
      await this.#rest(this.#pauseAfter(failures), signal);
    }
  }

  /** Polls once. Returns whether the poll succeeded. */
  async #poll(signal: AbortSignal): Promise<boolean> {
    const { name, poll, logger } = this.#options;
    try {
      await poll(signal);
      return true;
    } catch (error) {
      if (!signal.aborted)
        logger.warn(`polling for new builds of ${name} failed: ${(error as Error).message}`);
      return false;
    }
  }

  #pauseAfter(failures: number): number {
    const { interval } = this.#options;
    const longest = Math.max(interval, MAX_PAUSE);
    return Math.min(longest, interval * 2 ** failures) * (1 - this.#random() * JITTER);
  }

  /** Sleeps until the end of the pause, or until the poller is woken. */
  async #rest(pause: number, signal: AbortSignal): Promise<void> {
    const over = new AbortController();
    const either = AbortSignal.any([signal, over.signal]);
    const sleep = async (milliseconds: number): Promise<void> =>
      this.#clock.sleep(milliseconds, either).catch(() => undefined);
    const shortest = Math.min(pause, MIN_PAUSE);
    await sleep(shortest);
    await Promise.race([sleep(pause - shortest), this.#woken.promise]);
    over.abort();
  }
}
