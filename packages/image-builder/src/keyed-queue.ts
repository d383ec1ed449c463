import { signalOf, unlessAborted } from './cancellation.ts';
import type { OperationOptions } from './types.ts';

/** Runs operations with the same key one after the other, others concurrently. */
export class KeyedQueue {
  /** Last operation of each key. */
  readonly #last = new Map<string, Promise<unknown>>();

  /**
   * Runs `work` after earlier work with the same key has ended. @throws the signal's reason instead, once it has aborted
   */
  async run<T>(
    key: string,
    options: OperationOptions,
    work: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const signal = signalOf(options);
    const begun = Promise.withResolvers<void>();
    const run = async (): Promise<T> => {
      begun.resolve();
      signal.throwIfAborted();
      return await work(signal);
    };
    const earlier = this.#last.get(key) ?? Promise.resolve();
    const operation = earlier.then(run, run);
    this.#last.set(key, operation);
    // After an abort, the operation keeps its place, because the next one has to wait for the earlier ones.
    const forget = (): void => {
      if (this.#last.get(key) === operation) this.#last.delete(key);
    };
    void operation.then(forget, forget);
    await unlessAborted(begun.promise, signal);
    return await operation;
  }
}
