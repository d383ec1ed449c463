import { SingleFlight } from '@nodepool-builder/image-builder/internal';
import type { Clock } from '@nodepool-builder/image-builder/plugin';
import type { CatalogEndpoint } from './catalog.ts';

/** A Keystone token with the service catalog. */
export interface Token {
  /** Value of the `X-Auth-Token` header; a secret. */
  readonly id: string;
  /** Milliseconds since the epoch, by the clock of this host instead of Keystone's. */
  readonly expiresAt: number;
  readonly catalog: readonly CatalogEndpoint[];
  readonly projectId: string | undefined;
}

/** Min remaining lifetime of a token for a new request, in milliseconds (MIN_TOKEN_LIFE_SECONDS of keystoneauth). */
const MIN_LIFETIME = 120_000;

/** Holds the token of all clients and renews it in time. All callers that wait share one request. */
export class TokenKeeper {
  readonly #issue: (signal: AbortSignal) => Promise<Token>;
  readonly #clock: Clock;
  readonly #renewal = new SingleFlight<Token>();
  #token: Token | undefined;

  constructor(issue: (signal: AbortSignal) => Promise<Token>, clock: Clock) {
    this.#issue = issue;
    this.#clock = clock;
  }

  /** Returns a token for a new request. Aborting detaches only this caller; the renewal continues for the others. */
  async current(signal: AbortSignal): Promise<Token> {
    signal.throwIfAborted();
    if (this.#token !== undefined && this.#token.expiresAt - this.#clock.now() >= MIN_LIFETIME) {
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
