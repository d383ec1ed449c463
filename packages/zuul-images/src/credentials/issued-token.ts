import { type Clock, SingleFlight } from '@nodepool-builder/image-builder/module-kit';
import type { ZuulCredentials } from './credentials.ts';

/** A token that was issued to us. */
export interface IssuedToken {
  readonly value: string;
  /** Milliseconds since the epoch; absent if nobody knows. */
  readonly expiresAt?: number;
}

/** A token with less than this many milliseconds left may expire on its way. */
const SHORTEST_LIFE = 30_000;

/** Keeps a token until it expires or is rejected; then has one issued, however many wait for it. */
export class IssuedTokens implements ZuulCredentials {
  readonly #issue: (signal: AbortSignal) => Promise<IssuedToken>;
  readonly #clock: Clock;
  readonly #issuing = new SingleFlight<IssuedToken>();
  #token: IssuedToken | undefined;

  constructor(issue: (signal: AbortSignal) => Promise<IssuedToken>, clock: Clock) {
    this.#issue = issue;
    this.#clock = clock;
  }

  async token(signal: AbortSignal): Promise<string> {
    const { value, expiresAt = Number.POSITIVE_INFINITY } = this.#token ?? {};
    if (value !== undefined && expiresAt - this.#clock.now() >= SHORTEST_LIFE) return value;
    this.#token = await this.#issuing.run('token', (options) => this.#issue(options.signal), { signal });
    return this.#token.value;
  }

  reject(token: string): void {
    if (this.#token?.value === token) this.#token = undefined;
  }
}
