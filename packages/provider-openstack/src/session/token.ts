import { type Clock, SingleFlight } from '@nodepool-builder/image-builder/module-kit';
import type { CatalogEndpoint } from './catalog.ts';

/** A token of Keystone, with the catalog of services. */
export interface Token {
  /** Value of `X-Auth-Token`; a secret. */
  readonly id: string;
  /** Milliseconds since the epoch by the clock of this host, not Keystone's. */
  readonly expiresAt: number;
  readonly catalog: readonly CatalogEndpoint[];
  readonly projectId: string | undefined;
}

/** Shortest remaining life of a token for a new request, in milliseconds (MIN_TOKEN_LIFE_SECONDS of keystoneauth). */
const SHORTEST_LIFE = 120_000;

/** Holds a token for all clients and renews it in time, with one request for all that wait. */
export class TokenKeeper {
  readonly #issue: (signal: AbortSignal) => Promise<Token>;
  readonly #clock: Clock;
  readonly #renewal = new SingleFlight<Token>();
  #token: Token | undefined;

  constructor(issue: (signal: AbortSignal) => Promise<Token>, clock: Clock) {
    this.#issue = issue;
    this.#clock = clock;
  }

  /** A token for a new request. Aborting detaches only this caller; the renewal continues for the others. */
  async current(signal: AbortSignal): Promise<Token> {
    signal.throwIfAborted();
    if (this.#token !== undefined && this.#token.expiresAt - this.#clock.now() >= SHORTEST_LIFE) {
      return this.#token;
    }
    const renew = async (options: { readonly signal: AbortSignal }): Promise<Token> => {
      this.#token = await this.#issue(options.signal);
      return this.#token;
    };
    return await this.#renewal.run('token', renew, { signal });
  }

  /** Discards a token after a 401. */
  reject(token: Token): void {
    if (this.#token === token) this.#token = undefined;
  }
}
