import type { Logger } from '@nodepool-builder/image-builder';
import {
  type Clock,
  type RetryLimits,
  RetryPolicy,
  SYSTEM_CLOCK,
} from '@nodepool-builder/image-builder/module-kit';
import { hasAdminClaim } from '../credentials/json-web-token.ts';
import type { ZuulCredentials } from '../credentials/zuul-credentials.ts';
import { ZuulError } from './zuul-error.ts';
import { ZuulHttp } from './zuul-http.ts';

const RETRIES: RetryLimits = { attempts: 4, firstDelay: 1, longestDelay: 30, longestRetryAfter: 60 };

/** Settings of an {@link ApiSession}. */
export interface ApiSessionOptions {
  readonly logger: Logger;
  /** Default: none. */
  readonly credentials?: ZuulCredentials | undefined;
  /** Default: a client that trusts Node's authorities. */
  readonly http?: ZuulHttp;
  readonly clock?: Clock;
  /** Jitter of the delays, from 0 to below 1. */
  readonly random?: () => number;
}

/** Reads JSON from one Zuul API: sends the token, and retries transient errors. */
export class ApiSession {
  readonly #api: string;
  readonly #logger: Logger;
  readonly #credentials: ZuulCredentials | undefined;
  readonly #http: ZuulHttp;
  readonly #retries: RetryPolicy;
  #warned = false;

  /** @param api name in messages */
  constructor(api: string, { logger, credentials, http, clock = SYSTEM_CLOCK, random }: ApiSessionOptions) {
    this.#api = api;
    this.#logger = logger;
    this.#credentials = credentials;
    this.#http = http ?? new ZuulHttp({ clock });
    this.#retries = new RetryPolicy(RETRIES, { clock, ...(random && { random }) });
  }

  /**
   * Sends a GET and reads its answer with `read`, whose errors name the invalid field.
   *
   * @throws ZuulError
   */
  async get<T>(url: URL, read: (value: unknown) => T, signal: AbortSignal): Promise<T> {
    return await this.#retries.run(() => this.#send(url, read, signal), {
      signal,
      onRetry: ({ message }, delay, attempt) => {
        const count = `attempt ${attempt} of ${RETRIES.attempts}`;
        this.#logger.info(`${message} (${count}); the next attempt is in ${delay.toFixed(1)} s`);
      },
    });
  }

  /** Sends a request with a token, and again with another token after a 401. */
  async #send<T>(url: URL, read: (value: unknown) => T, signal: AbortSignal): Promise<T> {
    const name = `${this.#api}: GET ${url.pathname}`; // without the query, which is long
    const send = async (token: string | undefined): Promise<T> => {
      const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
      return await this.#http.json(name, { url, headers, signal }, read);
    };
    const token = await this.#credentials?.token(signal);
    this.#warnOfAdminToken(token);
    try {
      return await send(token);
    } catch (error) {
      if (!(error instanceof ZuulError) || error.status !== 401 || token === undefined) throw error;
      this.#credentials?.reject(token);
      const another = await this.#credentials?.token(signal);
      if (another === token) throw error;
      return await send(another);
    }
  }

  /** Warns once: Zuul refuses an admin token by default, and elsewhere it permits far more than reading builds. */
  #warnOfAdminToken(token: string | undefined): void {
    if (this.#warned || token === undefined || !hasAdminClaim(token)) return;
    this.#warned = true;
    this.#logger.warn(
      `${this.#api}: the token has the claim zuul.admin, the rights of a tenant's administrator; ` +
        'use shared-secret, which creates tokens that only read',
    );
  }
}
