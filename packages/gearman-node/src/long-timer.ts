import { MAX_TIMER_DELAY } from './argument-checks.ts';

/** A timer without the limit of setTimeout, which is about 25 days. */
export class LongTimer {
  #timer: NodeJS.Timeout;

  /** @param delay milliseconds */
  constructor(delay: number, action: () => void) {
    this.#timer = this.#start(delay, action);
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  #start(delay: number, action: () => void): NodeJS.Timeout {
    if (delay <= MAX_TIMER_DELAY) return setTimeout(action, delay);
    return setTimeout(() => {
      this.#timer = this.#start(delay - MAX_TIMER_DELAY, action);
    }, MAX_TIMER_DELAY);
  }
}
