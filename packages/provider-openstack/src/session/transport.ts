import { readFile } from 'node:fs/promises';
import { createSecureContext } from 'node:tls';
import type { Logger } from '@nodepool-builder/image-builder';
import {
  errorMessage,
  retryText,
  SYSTEM_CLOCK,
  staysWithHost,
} from '@nodepool-builder/image-builder/internal';
import {
  type Clock,
  CloudError,
  HttpAgent,
  HttpClient,
  type HttpRequest,
  type HttpResponse,
  type RetryLimits,
  RetryPolicy,
} from '@nodepool-builder/image-builder/plugin';
import type { CloudSettings } from '../cloud-settings.ts';
import { networkError, responseError } from './request-errors.ts';
import { putStream, readStream, type StreamPut, type StreamRead, type StreamResponse } from './streams.ts';

/** Retries of requests. */
const DEFAULT_RETRY_LIMITS: RetryLimits = {
  attempts: 6,
  firstDelay: 1,
  maxDelay: 30,
  maxRetryAfter: 120,
};

const MAX_REDIRECTS = 5;

export interface TransportOptions {
  readonly logger: Logger;
  /** Seconds between the starts of two requests (`rate` of `nodepool.yaml`). Default 0. */
  readonly rate?: number;
  /**
   * Seconds after which a stream fails if the cloud reads or sends no byte, or sends no response after the last one.
   * Default 300.
   */
  readonly stallTimeout?: number;
  /** Limits of retries. Default {@link DEFAULT_RETRY_LIMITS}. */
  readonly retry?: Partial<RetryLimits>;
  /** Clock of delays and the rate limit. Default {@link SYSTEM_CLOCK}. */
  readonly clock?: Clock;
  /** Random source for delay jitter: from 0 to below 1. Default `Math.random`. */
  readonly random?: () => number;
}

type Method = NonNullable<HttpRequest['method']>;

/** Parts of a request that an error message shows or masks. */
type Sent = Pick<HttpRequest, 'url' | 'headers'> & { readonly method: Method };

/** Properties of a stream's request that the transport sets. */
type TransportParts = 'name' | 'agent' | 'stallTimeout';

/** HTTP to one cloud, with TLS settings, rate limit, timeout and retries. */
export class Transport {
  readonly cloud: string;
  readonly clock: Clock;
  readonly #settings: CloudSettings;
  readonly #options: TransportOptions;
  readonly #rateLimiter: RateLimiter;
  readonly #retries: RetryPolicy;
  #agent: Promise<HttpAgent> | undefined;

  constructor(settings: CloudSettings, options: TransportOptions) {
    const { rate = 0, retry, clock = SYSTEM_CLOCK, random = Math.random } = options;
    this.cloud = settings.name;
    this.clock = clock;
    this.#settings = settings;
    this.#options = options;
    this.#rateLimiter = new RateLimiter(rate, clock);
    this.#retries = new RetryPolicy({ ...DEFAULT_RETRY_LIMITS, ...retry }, { clock, random });
  }

  /**
   * Retries requests after a transient error.
   *
   * @param mayRetry default: whether the error is retriable
   */
  async retry<T>(
    signal: AbortSignal,
    work: () => Promise<T>,
    mayRetry: (error: CloudError) => boolean = ({ retriable }) => retriable,
  ): Promise<T> {
    return await this.#retries.run(work, {
      signal,
      mayRetry: (error) => error instanceof CloudError && mayRetry(error),
      onRetry: (retry) => this.#options.logger.warn(`${retry.error.message}; ${retryText(retry)}`),
    });
  }

  warn(message: string): void {
    this.#options.logger.warn(message);
  }

  /** Sends a request once. Resolves with the response, whatever its status. */
  async send(request: HttpRequest & { readonly method: Method }): Promise<HttpResponse> {
    const { signal } = request;
    const agent = await this.#openAgent();
    await this.#rateLimiter.turn(signal);
    const client = new HttpClient({ timeout: this.#settings.apiTimeout, agent });
    try {
      return await client.send({ ...request, headers: { accept: 'application/json', ...request.headers } });
    } catch (error) {
      signal?.throwIfAborted();
      throw networkError(this.#name(request), error);
    }
  }

  /**
   * Sends a PUT once. Starts over at the target of a redirect that requires it and stays on the host. Resolves with any
   * other response, whatever its status. Throws an error of the body unchanged.
   */
  async put(
    request: Omit<StreamPut, TransportParts | 'body'> & { readonly body: () => AsyncIterable<Buffer> },
  ): Promise<HttpResponse> {
    const parts = await this.#prepare('PUT', request);
    let { url } = request;
    for (let redirects = 0; ; redirects += 1) {
      const response = await putStream({ ...request, ...parts, url, body: request.body() });
      const { location = '' } = response.headers;
      const isRedirect = response.status === 307 || response.status === 308;
      if (!isRedirect || redirects === MAX_REDIRECTS || !staysWithHost(url.href, location)) return response;
      url = new URL(location, url);
    }
  }

  /** Sends a GET once. Resolves when a response starts, whatever its status. */
  async read(request: Omit<StreamRead, TransportParts>): Promise<StreamResponse> {
    return await readStream({ ...request, ...(await this.#prepare('GET', request)) });
  }

  /** Waits for the turn of a stream's request. */
  async #prepare(
    method: Method,
    { url, signal }: Pick<StreamRead, 'url' | 'signal'>,
  ): Promise<Pick<StreamRead, TransportParts>> {
    const { stallTimeout = 300 } = this.#options;
    const agent = await this.#openAgent();
    await this.#rateLimiter.turn(signal);
    return { name: this.#name({ method, url }), agent, stallTimeout };
  }

  /** Converts an error response to an error. */
  responseError(request: Sent, response: HttpResponse): CloudError {
    const { password, token, secret } = this.#settings.auth as Readonly<Record<string, unknown>>;
    const secrets = [password, token, secret, request.headers?.['x-auth-token']];
    return responseError(this.#name(request), response, {
      method: request.method,
      secrets: secrets.filter((value) => typeof value === 'string'),
      now: this.clock.now(),
    });
  }

  /** Parses the JSON body of a response. An empty or invalid body is read as `undefined`. */
  parse<T>(request: Sent, { body, status }: HttpResponse, read: (value: unknown) => T): T {
    try {
      return read(parsed(body));
    } catch (cause) {
      const reason = errorMessage(cause);
      throw new CloudError(
        'invalid-response',
        `${this.#name(request)}: unexpected response: ${reason}; check that the URL belongs to the service`,
        { cause, status },
      );
    }
  }

  /** Names a request without the URL's query, which may contain a signature. */
  #name({ method, url: { origin, pathname } }: Sent): string {
    return `cloud ${this.cloud}: ${method} ${origin}${pathname}`;
  }

  #openAgent(): Promise<HttpAgent> {
    if (this.#agent === undefined) {
      this.#agent = createAgent(this.#settings);
      this.#agent.catch(() => {
        this.#agent = undefined;
      });
    }
    return this.#agent;
  }
}

/** @throws CloudError `invalid-settings` if a file in the TLS settings cannot be read or used */
async function createAgent({ name, tls }: CloudSettings): Promise<HttpAgent> {
  const invalid = (what: string, cause: unknown, remedy: string): CloudError => {
    const reason = (cause as Error).message;
    return new CloudError('invalid-settings', `cloud ${name}: ${what}: ${reason}; ${remedy}`, { cause });
  };
  const read = async (path: string | undefined, key: string): Promise<Buffer | undefined> => {
    try {
      return path === undefined ? undefined : await readFile(path);
    } catch (cause) {
      throw invalid(key, cause, 'correct it in clouds.yaml');
    }
  };
  const ca = await read(tls.caFile, 'cacert');
  const cert = await read(tls.certFile, 'cert');
  const key = (await read(tls.keyFile, 'key')) ?? cert;
  try {
    createSecureContext({ ca, cert, key });
  } catch (cause) {
    const remedy = 'they must be PEM files that belong together';
    throw invalid('cacert, cert and key cannot be used', cause, remedy);
  }
  return new HttpAgent({ ca, cert, key, rejectUnauthorized: tls.verify });
}

/** Keeps the starts of requests at least an interval apart, whatever their duration. */
export class RateLimiter {
  readonly #interval: number;
  readonly #clock: Clock;
  #next = 0;
  /** Last clock reading. */
  #seen = 0;

  /** @param rate seconds between the starts of two requests */
  constructor(rate: number, clock: Clock) {
    this.#interval = rate * 1000;
    this.#clock = clock;
  }

  /** Resolves when the request may start. */
  async turn(signal?: AbortSignal): Promise<void> {
    const now = this.#clock.now();
    // A clock that is set back must not delay requests.
    if (now < this.#seen) this.#next -= this.#seen - now;
    this.#seen = now;
    const start = Math.max(now, this.#next);
    this.#next = start + this.#interval;
    if (start > now) await this.#clock.sleep(start - now, signal);
  }
}

function parsed(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}
