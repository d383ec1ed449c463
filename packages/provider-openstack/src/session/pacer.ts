import type { Clock } from './clock.ts';

/** Lets requests begin one after another, at least an interval apart (`rate`); how long they last is all the same. */
export class Pacer {
  readonly #interval: number;
  readonly #clock: Clock;
  #next = 0;
  /** Last reading of the clock. */
  #seen = 0;

  /** `rate`: seconds between the starts of two requests. */
  constructor(rate: number, clock: Clock) {
    this.#interval = rate * 1000;
    this.#clock = clock;
  }

  /** Resolves when the caller may begin. */
  async turn(signal?: AbortSignal): Promise<void> {
    const now = this.#clock.now();
    // A clock that is set back must not delay a request.
    if (now < this.#seen) this.#next -= this.#seen - now;
    this.#seen = now;
    const start = Math.max(now, this.#next);
    this.#next = start + this.#interval;
    if (start > now) await this.#clock.sleep(start - now, signal);
  }
}
