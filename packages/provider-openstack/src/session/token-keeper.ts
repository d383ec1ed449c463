import type { Clock } from './clock.ts';
import type { Token } from './token.ts';

/** A token with less than this is no longer used for a new request (keystoneauth's MIN_TOKEN_LIFE_SECONDS). */
const SHORTEST_LIFE = 120_000;

/** Holds one token for all who need it, and renews it in time: one request, however many wait for it. */
export class TokenKeeper {
  readonly #issue: () => Promise<Token>;
  readonly #clock: Clock;
  #token: Token | undefined;
  #renewal: Promise<Token> | undefined;

  constructor(issue: () => Promise<Token>, clock: Clock) {
    this.#issue = issue;
    this.#clock = clock;
  }

  /** A token for a request that begins now. Who aborts leaves; the renewal goes on for the others. */
  async current(signal: AbortSignal): Promise<Token> {
    signal.throwIfAborted();
    if (this.#token !== undefined && this.#token.expiresAt - this.#clock.now() >= SHORTEST_LIFE) {
      return this.#token;
    }
    this.#renewal ??= this.#renew();
    return await unlessAborted(this.#renewal, signal);
  }

  /** The cloud answered 401 to this token: it is not used again. */
  reject(token: Token): void {
    if (this.#token === token) this.#token = undefined;
  }

  async #renew(): Promise<Token> {
    try {
      this.#token = await this.#issue();
      return this.#token;
    } finally {
      this.#renewal = undefined;
    }
  }
}

async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  const abort = (): void => aborted.reject(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  try {
    return await Promise.race([promise, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}
