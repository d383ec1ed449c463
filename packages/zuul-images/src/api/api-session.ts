import type { Logger } from '@nodepool-builder/image-builder';
import { ANONYMOUS, type ZuulCredentials } from '../credentials/credentials.ts';
import { hasAdminClaim } from '../credentials/json-web-token.ts';
import { answerError } from './answer-error.ts';
import { type Clock, SYSTEM_CLOCK } from './clock.ts';
import { type HttpAnswer, HttpClient } from './http-client.ts';
import { parseAnswer } from './parse-answer.ts';
import { retry } from './retry.ts';

/** What an {@link ApiSession} needs. */
export interface ApiSessionOptions {
  readonly logger: Logger;
  /** Default: none. */
  readonly credentials?: ZuulCredentials;
  /** Default: one that trusts the usual authorities. */
  readonly http?: HttpClient;
  readonly clock?: Clock;
  /** 0 to below 1; for pauses. */
  readonly random?: () => number;
}

/** Reads JSON from one Zuul API: sends the token, and retries transient errors. */
export class ApiSession {
  readonly #api: string;
  readonly #logger: Logger;
  readonly #credentials: ZuulCredentials;
  readonly #http: HttpClient;
  readonly #clock: Clock;
  readonly #random: () => number;
  #warned = false;

  /** @param api what messages call it */
  constructor(api: string, options: ApiSessionOptions) {
    this.#api = api;
    this.#logger = options.logger;
    this.#credentials = options.credentials ?? ANONYMOUS;
    this.#http = options.http ?? new HttpClient();
    this.#clock = options.clock ?? SYSTEM_CLOCK;
    this.#random = options.random ?? Math.random;
  }

  /**
   * What `read` makes of the answer to a GET; an Error of `read` names the place of a fault.
   *
   * @throws ZuulError
   * @throws the signal's reason
   */
  async get<T>(url: URL, read: (value: unknown) => T, signal: AbortSignal): Promise<T> {
    // a path may be told; a query is long
    const request = `${this.#api}: GET ${url.pathname}`;
    return await retry(
      async () => {
        const answer = await this.#send(request, url, signal);
        if (answer.status !== 200) throw answerError(request, answer, this.#clock.now());
        return parseAnswer(request, answer, read);
      },
      { clock: this.#clock, logger: this.#logger, random: this.#random, signal },
    );
  }

  /** Sends with a token, and once more with another if that one is not taken. */
  async #send(request: string, url: URL, signal: AbortSignal): Promise<HttpAnswer> {
    const attempt = (token: string | undefined): Promise<HttpAnswer> =>
      this.#http.send(request, {
        url,
        ...(token !== undefined && { headers: { authorization: `Bearer ${token}` } }),
        signal,
      });
    const token = await this.#credentials.token(signal);
    this.#warnOfAdminToken(token);
    const answer = await attempt(token);
    if (answer.status !== 401 || token === undefined) return answer;
    this.#credentials.reject(token);
    const another = await this.#credentials.token(signal);
    return another === undefined || another === token ? answer : await attempt(another);
  }

  /** Warns once: Zuul refuses such a token by default, and elsewhere it can do far more than read builds. */
  #warnOfAdminToken(token: string | undefined): void {
    if (this.#warned || token === undefined || !hasAdminClaim(token)) return;
    this.#warned = true;
    this.#logger.warn(
      `${this.#api}: the token has the claim zuul.admin, the rights of a tenant's administrator; use shared-secret, which makes tokens that only read`,
    );
  }
}
