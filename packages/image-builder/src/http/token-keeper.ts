import { CloudError } from '../cloud-error.ts';
import { SingleFlight } from '../single-flight.ts';
import type { Clock } from './retry-policy.ts';

/** A token for requests. */
export interface IssuedToken {
  /** Secret text. */
  readonly value: string;
  /** Milliseconds since 1970, by the clock of this host; absent if unknown. */
  readonly expiresAt?: number | undefined;
}

/** Keeps a token until it expires or is rejected, then requests another one, once for all concurrent callers. */
export class TokenKeeper<T extends IssuedToken> {
  readonly #issue: (signal: AbortSignal) => Promise<T>;
  readonly #minLifetime: number;
  readonly #clock: Clock;
  readonly #issuing = new SingleFlight<T>();
  #token: T | undefined;

  /** @param minLifetime min remaining lifetime of a token for a new request, in milliseconds */
  constructor(issue: (signal: AbortSignal) => Promise<T>, minLifetime: number, clock: Clock) {
    this.#issue = issue;
    this.#minLifetime = minLifetime;
    this.#clock = clock;
  }

  /** Returns a token for a new request. Aborting detaches only this caller; the renewal continues for the others. */
  async current(signal: AbortSignal): Promise<T> {
    signal.throwIfAborted();
    const { expiresAt = Number.POSITIVE_INFINITY } = this.#token ?? {};
    if (this.#token !== undefined && expiresAt - this.#clock.now() >= this.#minLifetime) return this.#token;
    this.#token = await this.#issuing.run('token', (options) => this.#issue(options.signal), { signal });
    return this.#token;
  }

  /** Runs a request, and once more after a 401 if another token can be issued. */
  async run<Result>(signal: AbortSignal, request: (token: T) => Promise<Result>): Promise<Result> {
    const token = await this.current(signal);
    try {
      return await request(token);
    } catch (error) {
      if (!(error instanceof CloudError) || error.status !== 401) throw error;
      if (this.#token === token) this.#token = undefined;
      const another = await this.current(signal);
      if (another.value === token.value) throw error;
      return await request(another);
    }
  }
}
