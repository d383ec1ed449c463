/** Blocks its callers until it is released or their signal aborts. */
export class Hold {
  readonly #reached = Promise.withResolvers<void>();
  readonly #released = Promise.withResolvers<void>();

  /** Resolves when the first caller waits. */
  get reached(): Promise<void> {
    return this.#reached.promise;
  }

  release(): void {
    this.#released.resolve();
  }

  async wait(signal: AbortSignal): Promise<void> {
    this.#reached.resolve();
    const aborted = Promise.withResolvers<never>();
    const abort = (): void => aborted.reject(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort);
    await Promise.race([this.#released.promise, aborted.promise]).finally(() =>
      signal.removeEventListener('abort', abort),
    );
  }
}
