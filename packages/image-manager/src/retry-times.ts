import type { Timing } from './configuration.ts';
import { pauseAfter } from './planning/back-off.ts';

/** Times of the next attempts after failures. Each failure in a row doubles the pause, up to a limit. */
export class RetryTimes {
  readonly #timing: () => Timing;
  readonly #failures = new Map<string, number>();
  readonly #retryAt = new Map<string, number>();

  /** @param timing returns the current settings */
  constructor(timing: () => Timing) {
    this.#timing = timing;
  }

  /** Times of the next attempts on the clock of {@link failed}, by id. */
  get all(): ReadonlyMap<string, number> {
    return this.#retryAt;
  }

  /**
   * @param now monotonic clock, in milliseconds
   * @returns the pause in seconds
   */
  failed(id: string, now: number): number {
    const failures = (this.#failures.get(id) ?? 0) + 1;
    const pause = pauseAfter(failures, this.#timing());
    this.#failures.set(id, failures);
    this.#retryAt.set(id, now + pause * 1000);
    return pause;
  }

  succeeded(id: string): void {
    this.#failures.delete(id);
    this.#retryAt.delete(id);
  }
}
