import { checkRange, MAX_TIMER_DELAY } from '../argument-checks.ts';

/** Pauses between attempts to connect, in milliseconds. */
export interface BackoffOptions {
  /** Maximum first pause. Default 100. */
  readonly minDelay?: number;
  /** Maximum pause. Default 5,000. */
  readonly maxDelay?: number;
}

const DEFAULT_MIN_DELAY = 100;
const DEFAULT_MAX_DELAY = 5000;

/**
 * Exponential back-off with jitter. Each pause is reduced at random by up to half, so that a fleet does not reconnect
 * at once.
 */
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

  /** Returns the next pause, in milliseconds. */
  next(): number {
    const full = Math.min(this.#maxDelay, this.#minDelay * 2 ** this.#failures);
    this.#failures += 1;
    return full * (1 - this.#random() / 2);
  }

  /** Resets the pause to the minimum. */
  reset(): void {
    this.#failures = 0;
  }
}
