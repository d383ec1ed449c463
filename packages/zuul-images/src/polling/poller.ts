import type { Logger } from '@nodepool-builder/image-builder';
import { type Clock, SYSTEM_CLOCK } from '@nodepool-builder/image-builder/module-kit';

/** Each pause is up to this part shorter than the interval, so that many pollers do not ask at the same time. */
const JITTER = 0.2;

/** The longest pause after failures, in milliseconds, unless the interval is longer. */
const LONGEST_PAUSE = 900_000;

/** Milliseconds between two looks at least, however often it is woken. */
const SHORTEST_PAUSE = 1_000;

/** Settings of a {@link Poller}. */
export interface PollerOptions {
  /** What is looked for, for messages: `the builds of debian`. */
  readonly what: string;
  /** One look; what it rejects with is logged, and it is tried again. */
  readonly look: (signal: AbortSignal) => Promise<void>;
  /** Milliseconds between the end of a look and the next at most, as long as looks succeed. */
  readonly interval: number;
  readonly logger: Logger;
  readonly clock?: Clock;
  /** 0 to below 1. */
  readonly random?: () => number;
}

/** Looks at once, then again and again: within an interval, when it is woken, and less often while looks fail. */
export class Poller implements AsyncDisposable {
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

  /** Has it look now, or again if it is just looking. */
  wake(): void {
    this.#woken.resolve();
  }

  /** Aborts the look under way, and resolves when it has ended. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#running;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #run(signal: AbortSignal): Promise<void> {
    for (let failures = 0; !signal.aborted; ) {
      this.#woken = Promise.withResolvers();
      failures = (await this.#look(signal)) ? 0 : failures + 1;
      await this.#rest(this.#pause(failures), signal);
    }
  }

  /** Whether the look succeeded. */
  async #look(signal: AbortSignal): Promise<boolean> {
    const { what, look, logger } = this.#options;
    try {
      await look(signal);
      return true;
    } catch (error) {
      if (!signal.aborted) logger.warn(`looking for ${what} failed: ${(error as Error).message}`);
      return false;
    }
  }

  #pause(failures: number): number {
    const { interval } = this.#options;
    const longest = Math.max(interval, LONGEST_PAUSE);
    return Math.min(longest, interval * 2 ** failures) * (1 - this.#random() * JITTER);
  }

  /** Sleeps until the time is over or it is woken. */
  async #rest(pause: number, signal: AbortSignal): Promise<void> {
    const over = new AbortController();
    const either = AbortSignal.any([signal, over.signal]);
    const sleep = async (milliseconds: number): Promise<void> =>
      this.#clock.sleep(milliseconds, either).catch(() => undefined);
    const shortest = Math.min(pause, SHORTEST_PAUSE);
    await sleep(shortest);
    await Promise.race([sleep(pause - shortest), this.#woken.promise]);
    over.abort();
  }
}
