import type { CloudSettings } from '../cloud-settings.ts';
import { OpenStackError } from '../openstack-error.ts';
import { type Agents, createAgents } from './agents.ts';
import { answerError, type HttpAnswer } from './answer-error.ts';
import type { Clock } from './clock.ts';
import { networkError } from './network-error.ts';
import { Pacer } from './pacer.ts';
import { putStream } from './put-stream.ts';
import { readStream, type StreamAnswer } from './read-stream.ts';
import type { HttpMethod } from './service-client.ts';

/** One small request. */
export interface HttpRequest {
  readonly method: HttpMethod;
  readonly url: URL;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal?: AbortSignal | undefined;
}

/** One large answer. */
export interface HttpRead {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  /** Seconds. */
  readonly stallTimeout: number;
  readonly signal?: AbortSignal | undefined;
}

/** One large request. */
export interface HttpPut extends HttpRead {
  readonly body: () => AsyncIterable<Buffer>;
  readonly size: number;
}

/** What a {@link Transport} needs besides the cloud's settings. */
export interface TransportOptions {
  readonly clock: Clock;
  /** Seconds between the starts of two requests. */
  readonly rate: number;
  readonly proxyEnv?: Readonly<Record<string, string | undefined>> | undefined;
}

/** HTTP to one cloud: its TLS, its rate, its time limit, and its errors in our terms. Nothing is tried twice here. */
export class Transport {
  readonly cloud: string;
  readonly clock: Clock;
  readonly #settings: CloudSettings;
  readonly #secrets: readonly string[];
  readonly #pacer: Pacer;
  readonly #proxyEnv: Readonly<Record<string, string | undefined>> | undefined;
  #agents: Promise<Agents> | undefined;

  constructor(settings: CloudSettings, { clock, rate, proxyEnv }: TransportOptions) {
    this.cloud = settings.name;
    this.clock = clock;
    this.#settings = settings;
    this.#secrets = secretsOf(settings);
    this.#pacer = new Pacer(rate, clock);
    this.#proxyEnv = proxyEnv;
  }

  /** Resolves with the answer, whatever its status. */
  async send(request: HttpRequest): Promise<HttpAnswer> {
    const { method, url, headers = {}, body, signal } = request;
    const agent = await this.#openAgents();
    const { default: got } = await import('got'); // not at the top: many builders talk to no cloud
    await this.#pacer.turn(signal);
    try {
      const answer = await got(url, {
        method,
        agent,
        headers: { accept: 'application/json', ...headers },
        ...(body !== undefined && { body }),
        ...(signal !== undefined && { signal }),
        throwHttpErrors: false,
        retry: { limit: 0 },
        timeout: { request: this.#settings.apiTimeout * 1000 },
        // the token and the body go to no other address
        followRedirect: ({ headers: { location = '' } }) => new URL(location, url).origin === url.origin,
      });
      return { status: answer.statusCode, headers: answer.headers, body: answer.body };
    } catch (error) {
      throw networkError(this.#name(method, url), error);
    }
  }

  /** Resolves with the answer, whatever its status; an error of the body itself is thrown as it is. */
  async put({ body, ...request }: HttpPut): Promise<HttpAnswer> {
    const agent = await this.#agentFor(request.url);
    await this.#pacer.turn(request.signal);
    return await putStream({
      ...request,
      body: body(),
      name: this.#name('PUT', request.url),
      agent,
    });
  }

  /** Resolves when the answer begins, whatever its status. */
  async read(request: HttpRead): Promise<StreamAnswer> {
    const agent = await this.#agentFor(request.url);
    await this.#pacer.turn(request.signal);
    return await readStream({
      ...request,
      name: this.#name('GET', request.url),
      agent,
    });
  }

  /** The error that an answer to a request means. */
  refusal(
    { method, url, headers }: Pick<HttpRequest, 'method' | 'url' | 'headers'>,
    answer: HttpAnswer,
  ): OpenStackError {
    return answerError(this.#name(method, url), answer, {
      secrets: [...this.#secrets, headers?.['x-auth-token'] ?? ''],
      now: this.clock.now(),
    });
  }

  /** What `read` makes of the JSON body of an answer; `undefined` is read from a body that is empty or no JSON. */
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

  /** A path may be told; the query of a URL may be a signature. */
  #name(method: HttpMethod, { origin, pathname }: URL): string {
    return `cloud ${this.cloud}: ${method} ${origin}${pathname}`;
  }

  async #agentFor({ protocol }: URL): Promise<Agents['http'] | Agents['https']> {
    const { http, https } = await this.#openAgents();
    return protocol === 'https:' ? https : http;
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
