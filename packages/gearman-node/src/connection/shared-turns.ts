/** Milliseconds of a turn of the event loop for the peers that cause much work, all together. */
const BUDGET = 2;

/**
 * Lets the connections of a server that have much work take turns. However many they are, each turn of the event loop
 * serves only as many of them as fit into a few milliseconds, so that peers with little work are served at once.
 */
export class SharedTurns {
  #waiting: (() => void)[] = [];
  #isScheduled = false;
  /** Number of those that may still run in this turn. */
  #left = 0;
  #end = 0;

  /** Resolves in a later turn of the event loop. The caller then works for half a millisecond at most. */
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
    this.#left = this.#waiting.length; // those that come later wait for the next turn
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
    queueMicrotask(this.#continue); // after the work of the one that was resolved
  };
}
