/** Milliseconds per turn of the event loop for all busy peers together. */
const BUDGET = 2;

/**
 * Lets a server's busy connections take turns. However many there are, each turn of the event loop serves only those
 * that fit into a few milliseconds, so that other peers are served at once.
 */
export class SharedTurns {
  #waiting: (() => void)[] = [];
  #isScheduled = false;
  /** Number of waiting callers that may still run in this turn. */
  #left = 0;
  #end = 0;

  /** Resolves in a later turn of the event loop. The caller then works for at most half a millisecond. */
  next(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      this.#schedule();
    });
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(this.#begin);
  }

  readonly #begin = (): void => {
    this.#left = this.#waiting.length; // callers that arrive later wait for the next turn
    this.#end = performance.now() + BUDGET;
    this.#continue();
  };

  readonly #continue = (): void => {
    const resolve = this.#left > 0 && performance.now() < this.#end ? this.#waiting.shift() : undefined;
    if (resolve === undefined) {
      this.#isScheduled = false;
      if (this.#waiting.length > 0) this.#schedule();
      return;
    }
    this.#left -= 1;
    resolve();
    queueMicrotask(this.#continue); // runs after the work of the resolved caller
  };
}
