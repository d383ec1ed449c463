import type { Timing } from './configuration.ts';
import { pauseAfter } from './planning/back-off.ts';

/** When something that failed may be tried again: pauses double, up to the longest. */
export class RetryTimes {
  readonly #timing: () => Timing;
  readonly #failures = new Map<string, number>();
  readonly #retryAt = new Map<string, number>();

  /** @param timing as it is in force now */
  constructor(timing: () => Timing) {
    this.#timing = timing;
  }

  /** Milliseconds on the clock of {@link failed}, by id. */
  get all(): ReadonlyMap<string, number> {
    return this.#retryAt;
  }

  /**
   * @param now milliseconds on a clock that is never set
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
