/**
 * A promise that is made when somebody asks for it. A rejection that nobody asks for is then no unhandled one: who
 * awaits a job's handle need not await its result.
 */
export class LazyPromise<T> {
  #deferred: PromiseWithResolvers<T> | undefined;
  #settle: ((deferred: PromiseWithResolvers<T>) => void) | undefined;

  get promise(): Promise<T> {
    if (!this.#deferred) {
      this.#deferred = Promise.withResolvers<T>();
      this.#settle?.(this.#deferred);
    }
    return this.#deferred.promise;
  }

  /** Only the first of all calls to settle counts. */
  resolve(value: T): void {
    this.#settleWith((deferred) => deferred.resolve(value));
  }

  reject(error: Error): void {
    this.#settleWith((deferred) => deferred.reject(error));
  }

  #settleWith(settle: (deferred: PromiseWithResolvers<T>) => void): void {
    if (this.#settle) return;
    this.#settle = settle;
    if (this.#deferred) settle(this.#deferred);
  }
}
