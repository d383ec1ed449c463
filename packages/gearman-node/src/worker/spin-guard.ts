/** A server that wakes a sleeper within this many milliseconds, and then has no job, may go on like that. */
const QUICK = 10;

/** So many quick vain wake-ups in a row are chance: many workers were woken for one job. */
const TOLERATED = 8;

const FIRST_PAUSE = 10;
const LONGEST_PAUSE = 1000;

/**
 * Holds back a worker whose server wakes it again and again without a job for it: gearmand does so thousands of
 * times a second while a job with a start time and one of low priority wait for the same function.
 */
export class SpinGuard {
  readonly #now: () => number;
  #sleptAt = 0;
  #vain = 0;
  #wokenQuickly = false;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** The worker went to sleep. */
  slept(): void {
    if (this.#wokenQuickly) this.#vain += 1;
    this.#wokenQuickly = false;
    this.#sleptAt = this.#now();
  }

  /** The server woke the worker. Returns how many milliseconds to wait before it grabs. */
  woken(): number {
    this.#wokenQuickly = this.#now() - this.#sleptAt < QUICK;
    if (!this.#wokenQuickly) this.#vain = 0;
    const excess = this.#vain - TOLERATED;
    return excess <= 0 ? 0 : Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (excess - 1));
  }

  /** The worker got a job. */
  served(): void {
    this.#vain = 0;
    this.#wokenQuickly = false;
  }
}
