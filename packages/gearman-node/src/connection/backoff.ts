import { checkRange, MAX_TIMER_DELAY } from '../argument-checks.ts';

/** How long to wait between two attempts, in milliseconds. */
export interface BackoffOptions {
  /** The longest first wait. Default 100. */
  readonly minDelay?: number;
  /** The longest wait of all. Default 5,000. */
  readonly maxDelay?: number;
}

export const DEFAULT_MIN_DELAY = 100;
export const DEFAULT_MAX_DELAY = 5000;

/** Waits that double up to a limit. Each is cut by up to a half at random, so that a fleet does not come back at once. */
export class Backoff {
  readonly #minDelay: number;
  readonly #maxDelay: number;
  readonly #random: () => number;
  #failures = 0;

  /** @throws GearmanError `invalid-argument` */
  constructor(options: BackoffOptions = {}, random: () => number = Math.random) {
    const { minDelay = DEFAULT_MIN_DELAY, maxDelay = DEFAULT_MAX_DELAY } = options;
    checkRange('minDelay', minDelay, 1, MAX_TIMER_DELAY);
    checkRange('maxDelay', maxDelay, minDelay, MAX_TIMER_DELAY);
    this.#minDelay = minDelay;
    this.#maxDelay = maxDelay;
    this.#random = random;
  }

  /** The next wait, in milliseconds. */
  next(): number {
    const full = Math.min(this.#maxDelay, this.#minDelay * 2 ** this.#failures);
    this.#failures += 1;
    return full * (1 - this.#random() / 2);
  }

  /** Starts again with the shortest wait. */
  reset(): void {
    this.#failures = 0;
  }
}
