import { type Clock, type HttpAnswer, HttpClient } from '@nodepool-builder/image-builder/module-kit';
import type { CloudSettings } from '../cloud-settings.ts';
import { OpenStackError } from '../openstack-error.ts';
import { type Agents, createAgents } from './agents.ts';
import { answerError } from './answer-error.ts';
import { networkError } from './network-error.ts';
import { putStream } from './put-stream.ts';
import { readStream, type StreamAnswer } from './read-stream.ts';
import type { HttpMethod } from './service-client.ts';

/** A request whose body and answer fit into memory. */
export interface HttpRequest {
  readonly method: HttpMethod;
  readonly url: URL;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal?: AbortSignal | undefined;
}

/** A request whose answer is streamed. */
export interface HttpRead {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  /** Seconds. */
  readonly stallTimeout: number;
  readonly signal?: AbortSignal | undefined;
}

/** A request whose body is streamed. */
export interface HttpPut extends HttpRead {
  readonly body: () => AsyncIterable<Buffer>;
  readonly size: number;
}

/** Settings of a {@link Transport} besides those of the cloud. */
export interface TransportOptions {
  readonly clock: Clock;
  /** Seconds between the starts of two requests. */
  readonly rate: number;
  readonly proxyEnv?: Readonly<Record<string, string | undefined>> | undefined;
}

/** HTTP to one cloud, with its TLS settings, rate limit and timeout. Each request is sent once. */
export class Transport {
  readonly cloud: string;
  readonly clock: Clock;
  readonly #settings: CloudSettings;
  readonly #secrets: readonly string[];
  readonly #rateLimiter: RateLimiter;
  readonly #proxyEnv: Readonly<Record<string, string | undefined>> | undefined;
  #agents: Promise<Agents> | undefined;
  #client: HttpClient | undefined;

  constructor(settings: CloudSettings, { clock, rate, proxyEnv }: TransportOptions) {
    this.cloud = settings.name;
    this.clock = clock;
    this.#settings = settings;
    this.#secrets = secretsOf(settings);
    this.#rateLimiter = new RateLimiter(rate, clock);
    this.#proxyEnv = proxyEnv;
  }

  /** Resolves with an answer of any status. */
  async send(request: HttpRequest): Promise<HttpAnswer> {
    const { method, url, signal } = request;
    const http = await this.#openClient();
    await this.#rateLimiter.turn(signal);
    try {
      return await http.send({ ...request, headers: { accept: 'application/json', ...request.headers } });
    } catch (error) {
      signal?.throwIfAborted();
      throw networkError(this.#name(method, url), error);
    }
  }

  /** Resolves with an answer of any status. An error of the body is thrown unchanged. */
  async put({ body, ...request }: HttpPut): Promise<HttpAnswer> {
    const agent = await this.#agentFor(request.url);
    await this.#rateLimiter.turn(request.signal);
    return await putStream({
      ...request,
      body: body(),
      name: this.#name('PUT', request.url),
      agent,
    });
  }

  /** Resolves when an answer of any status starts. */
  async read(request: HttpRead): Promise<StreamAnswer> {
    const agent = await this.#agentFor(request.url);
    await this.#rateLimiter.turn(request.signal);
    return await readStream({
      ...request,
      name: this.#name('GET', request.url),
      agent,
    });
  }

  /** Translates an answer into an error. */
  refusal(
    { method, url, headers }: Pick<HttpRequest, 'method' | 'url' | 'headers'>,
    answer: HttpAnswer,
  ): OpenStackError {
    return answerError(this.#name(method, url), answer, {
      secrets: [...this.#secrets, headers?.['x-auth-token'] ?? ''],
      now: this.clock.now(),
    });
  }

  /** Reads the JSON body of an answer; an empty or invalid body is read as `undefined`. */
  parse<T>(
    { method, url }: Pick<HttpRequest, 'method' | 'url'>,
    answer: HttpAnswer,
    read: (value: unknown) => T,
  ): T {
    try {
      return read(parsed(answer.body));
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new OpenStackError(
        'invalid-answer',
        `${this.#name(method, url)}: the answer is not as expected: ${reason}; check that the URL is that of the service`,
        { cause, status: answer.status },
      );
    }
  }

  /** Without the query of the URL, which may be a signature. */
  #name(method: HttpMethod, { origin, pathname }: URL): string {
    return `cloud ${this.cloud}: ${method} ${origin}${pathname}`;
  }

  async #agentFor({ protocol }: URL): Promise<Agents['http'] | Agents['https']> {
    const { http, https } = await this.#openAgents();
    return protocol === 'https:' ? https : http;
  }

  async #openClient(): Promise<HttpClient> {
    const agents = await this.#openAgents();
    this.#client ??= new HttpClient({ timeout: this.#settings.apiTimeout, agents });
    return this.#client;
  }

  #openAgents(): Promise<Agents> {
    if (this.#agents === undefined) {
      this.#agents = createAgents(this.#settings, this.#proxyEnv);
      this.#agents.catch(() => {
        this.#agents = undefined;
      });
    }
    return this.#agents;
  }
}

/** Lets requests start at least an interval apart; their duration does not matter. */
export class RateLimiter {
  readonly #interval: number;
  readonly #clock: Clock;
  #next = 0;
  /** Last reading of the clock. */
  #seen = 0;

  /** @param rate seconds between the starts of two requests */
  constructor(rate: number, clock: Clock) {
    this.#interval = rate * 1000;
    this.#clock = clock;
  }

  /** Resolves when the request may start. */
  async turn(signal?: AbortSignal): Promise<void> {
    const now = this.#clock.now();
    // A clock that is set back must not delay a request.
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

function secretsOf({ auth }: CloudSettings): readonly string[] {
  const { password, token, secret } = auth as { password?: string; token?: string; secret?: string };
  return [password, token, secret].filter((value) => value !== undefined);
}
