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
  readonly maxDelay: number;
  readonly #minDelay: number;
  readonly #random: () => number;
  #failures = 0;

  constructor(options: BackoffOptions = {}, random: () => number = Math.random) {
    this.#minDelay = options.minDelay ?? DEFAULT_MIN_DELAY;
    this.maxDelay = options.maxDelay ?? DEFAULT_MAX_DELAY;
    this.#random = random;
  }

  /** The next wait, in milliseconds. */
  next(): number {
    const full = Math.min(this.maxDelay, this.#minDelay * 2 ** this.#failures);
    this.#failures += 1;
    return full * (1 - this.#random() / 2);
  }

  /** Starts again with the shortest wait. */
  reset(): void {
    this.#failures = 0;
  }
}
