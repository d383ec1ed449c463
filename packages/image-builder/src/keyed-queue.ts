import { signalOf } from './cancellation.ts';
import type { OperationOptions } from './types.ts';

/** Runs operations with the same key one after the other, others concurrently. */
export class KeyedQueue {
  /** Last operation of each key. */
  readonly #last = new Map<string, Promise<unknown>>();

  /**
   * Runs `work` after earlier work with the same key has ended. @throws the signal's reason instead, if it has aborted
   */
  async run<T>(
    key: string,
    options: OperationOptions,
    work: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const signal = signalOf(options);
    const run = async (): Promise<T> => {
      signal.throwIfAborted();
      return await work(signal);
    };
    const earlier = this.#last.get(key) ?? Promise.resolve();
    const operation = earlier.then(run, run);
    this.#last.set(key, operation);
    try {
      return await operation;
    } finally {
      if (this.#last.get(key) === operation) this.#last.delete(key);
    }
  }
}
