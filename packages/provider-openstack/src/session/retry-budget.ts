import { AsyncLocalStorage } from 'node:async_hooks';

const CURRENT = new AsyncLocalStorage<RetryBudget | undefined>();

/**
 * The time for which an operation may retry. All requests of the operation share it, whichever service they go to. It
 * counts from the first failure.
 */
export class RetryBudget {
  readonly #limit: number;
  readonly #now: () => number;
  #firstFailure: number | undefined;

  /**
   * @param seconds from the first failure on in which a retry may begin
   * @param now milliseconds of a clock that never jumps
   */
  constructor(seconds: number, now: () => number = () => performance.now()) {
    this.#limit = seconds * 1000;
    this.#now = now;
  }

  /** The budget of the operation under way; undefined if only its number of tries is limited. */
  static get current(): RetryBudget | undefined {
    return CURRENT.getStore();
  }

  /** Runs work whose retries have no time limit, such as a clean-up. */
  static without<T>(work: () => Promise<T>): Promise<T> {
    return CURRENT.run(undefined, work);
  }

  run<T>(work: () => Promise<T>): Promise<T> {
    return CURRENT.run(this, work);
  }

  /** Time of a failure, an argument of the other methods. */
  failure(): number {
    return this.#now();
  }

  /** Whether a retry may begin after a pause, for work that first failed at that time. */
  allows(pause: number, firstFailure: number): boolean {
    return this.#now() + pause - (this.#firstFailure ?? firstFailure) < this.#limit;
  }

  /** Counts from that failure, unless the operation had failed before. */
  countFrom(firstFailure: number): void {
    this.#firstFailure ??= firstFailure;
  }
}
