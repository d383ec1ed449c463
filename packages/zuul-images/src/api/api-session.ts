import type { Logger } from '@nodepool-builder/image-builder';
import {
  type Clock,
  type HttpAnswer,
  type RetryLimits,
  RetryPolicy,
  SYSTEM_CLOCK,
} from '@nodepool-builder/image-builder/module-kit';
import { ANONYMOUS, type ZuulCredentials } from '../credentials/credentials.ts';
import { hasAdminClaim } from '../credentials/json-web-token.ts';
import { answerError } from './answer-error.ts';
import { parseAnswer } from './parse-answer.ts';
import { ZuulHttp } from './zuul-http.ts';

const RETRIES: RetryLimits = { attempts: 4, firstDelay: 1, longestDelay: 30, longestRetryAfter: 60 };

/** Settings of an {@link ApiSession}. */
export interface ApiSessionOptions {
  readonly logger: Logger;
  /** Default: none. */
  readonly credentials?: ZuulCredentials;
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
  readonly #credentials: ZuulCredentials;
  readonly #http: ZuulHttp;
  readonly #clock: Clock;
  readonly #retries: RetryPolicy;
  #warned = false;

  /** @param api name in messages */
  constructor(api: string, options: ApiSessionOptions) {
    this.#api = api;
    this.#logger = options.logger;
    this.#credentials = options.credentials ?? ANONYMOUS;
    this.#http = options.http ?? new ZuulHttp();
    this.#clock = options.clock ?? SYSTEM_CLOCK;
    const { random = Math.random } = options;
    this.#retries = new RetryPolicy(RETRIES, { clock: this.#clock, random });
  }

  /**
   * Sends a GET and reads its answer with `read`, whose errors name the invalid field.
   *
   * @throws ZuulError
   * @throws the signal's reason
   */
  async get<T>(url: URL, read: (value: unknown) => T, signal: AbortSignal): Promise<T> {
    // without the query, which is long
    const request = `${this.#api}: GET ${url.pathname}`;
    return await this.#retries.run(
      async () => {
        const answer = await this.#send(request, url, signal);
        if (answer.status !== 200) throw answerError(request, answer, this.#clock.now());
        return parseAnswer(request, answer, read);
      },
      {
        signal,
        onRetry: ({ message }, delay, attempt) =>
          this.#logger.info(
            `${message}; again in ${delay.toFixed(1)} s (try ${attempt} of ${RETRIES.attempts})`,
          ),
      },
    );
  }

  /** Sends a request with a token, and once more with another token after a 401. */
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

  /** Warns once: Zuul refuses an admin token by default, and elsewhere it permits far more than reading builds. */
  #warnOfAdminToken(token: string | undefined): void {
    if (this.#warned || token === undefined || !hasAdminClaim(token)) return;
    this.#warned = true;
    this.#logger.warn(
      `${this.#api}: the token has the claim zuul.admin, the rights of a tenant's administrator; use shared-secret, which makes tokens that only read`,
    );
  }
}
