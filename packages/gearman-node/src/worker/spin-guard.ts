/** A wake-up within this many milliseconds that brings no job may be one of many. */
const QUICK = 10;

/** Number of consecutive quick wake-ups without a job that are normal: several workers were woken for one job. */
const TOLERATED = 8;

const FIRST_PAUSE = 10;
const MAX_PAUSE = 1000;

/**
 * Slows down a worker whose server keeps waking it without a job. gearmand does that thousands of times per second
 * while a job with a start time and a job of low priority wait for the same function.
 */
export class SpinGuard {
  readonly #now: () => number;
  #sleptAt = 0;
  #vain = 0;
  #wokenQuickly = false;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Records that the worker went to sleep. */
  slept(): void {
    if (this.#wokenQuickly) this.#vain += 1;
    this.#wokenQuickly = false;
    this.#sleptAt = this.#now();
  }

  /** Records a wake-up. Returns the pause before the next grab, in milliseconds. */
  woken(): number {
    this.#wokenQuickly = this.#now() - this.#sleptAt < QUICK;
    if (!this.#wokenQuickly) this.#vain = 0;
    const excess = this.#vain - TOLERATED;
    return excess <= 0 ? 0 : Math.min(MAX_PAUSE, FIRST_PAUSE * 2 ** (excess - 1));
  }

  /** Records that the worker got a job. */
  served(): void {
    this.#vain = 0;
    this.#wokenQuickly = false;
  }
}
