import type { OperationOptions, Progress } from './types.ts';

interface Flight<T> {
  readonly controller: AbortController;
  readonly result: Promise<T>;
  readonly listeners: Set<(progress: Progress) => void>;
  waiters: number;
}

/**
 * Runs a function once for all concurrent callers. Aborting detaches only that caller; the function is aborted when no
 * caller is left.
 */
export class SingleFlight<T> {
  readonly #flights = new Map<string, Flight<T>>();

  /** Joins the running function for `key`, or starts it. Rejects with the reason of `signal` if it aborts. */
  async run(
    key: string,
    work: (options: Required<OperationOptions>) => Promise<T>,
    { signal, onProgress }: OperationOptions = {},
  ): Promise<T> {
    signal?.throwIfAborted();
    let flight = this.#flights.get(key);
    while (flight?.controller.signal.aborted) {
      await Promise.allSettled([flight.result]);
      signal?.throwIfAborted();
      flight = this.#flights.get(key);
    }
    const joined = flight ?? this.#begin(key, work);
    const { controller, result, listeners } = joined;
    const detached = Promise.withResolvers<never>();
    const detach = (): void => {
      joined.waiters -= 1;
      // The last caller waits for the end of the function, so that nothing runs after its rejection.
      if (joined.waiters === 0) controller.abort(signal?.reason);
      else detached.reject(signal?.reason);
    };
    joined.waiters += 1;
    if (onProgress !== undefined) listeners.add(onProgress);
    signal?.addEventListener('abort', detach, { once: true });
    try {
      return await Promise.race([result, detached.promise]);
    } finally {
      signal?.removeEventListener('abort', detach);
      if (onProgress !== undefined) listeners.delete(onProgress);
    }
  }

  has(key: string): boolean {
    return this.#flights.has(key);
  }

  /** Aborts the functions of all keys that `matches` accepts, and waits for their end. */
  async abort(reason: unknown, matches: (key: string) => boolean = () => true): Promise<void> {
    const flights = [...this.#flights].filter(([key]) => matches(key)).map(([, flight]) => flight);
    for (const { controller } of flights) controller.abort(reason);
    await Promise.allSettled(flights.map(({ result }) => result));
  }

  async settled(): Promise<void> {
    await Promise.allSettled(Array.from(this.#flights.values(), ({ result }) => result));
  }

  #begin(key: string, work: (options: Required<OperationOptions>) => Promise<T>): Flight<T> {
    const controller = new AbortController();
    const listeners = new Set<(progress: Progress) => void>();
    const onProgress = (progress: Progress): void => {
      for (const listener of listeners) listener(progress);
    };
    const result = work({ signal: controller.signal, onProgress }).finally(() => this.#flights.delete(key));
    const flight: Flight<T> = { controller, result, listeners, waiters: 0 };
    this.#flights.set(key, flight);
    return flight;
  }
}
