import type { Logger } from '@nodepool-builder/image-builder';
import type { RetryPolicy } from '@nodepool-builder/image-builder/module-kit';
import type { CloudSettings, ServiceSettings } from '../cloud-settings.ts';
import { OpenStackError } from '../openstack-error.ts';
import { findEndpoint, versioned } from './catalog.ts';
import { neverSent } from './network-error.ts';
import type {
  HttpMethod,
  JsonAnswer,
  JsonOptions,
  PutAnswer,
  PutOptions,
  ServiceClient,
} from './service-client.ts';
import { settingsUrl } from './settings-url.ts';
import type { Token } from './token.ts';
import type { TokenKeeper } from './token-keeper.ts';
import type { Transport } from './transport.ts';

/** Which service, and which version of its API. */
export interface ServiceRequest extends ServiceSettings {
  /** `v2`: appended to an address that names no version. */
  readonly version?: string;
}

/** What the clients of one session share. */
export interface ClientParts {
  readonly settings: CloudSettings;
  readonly transport: Transport;
  readonly retries: RetryPolicy;
  readonly logger: Logger;
  /** None for a cloud without Keystone. */
  readonly tokens: TokenKeeper | undefined;
  /** Aborts when the session is closed. */
  readonly closing: AbortSignal;
}

/** As keystoneauth has it in an endpoint override. */
const PROJECT_ID = /[%$]\((?:project|tenant)_id\)s/g;

const DEFAULT_STALL_TIMEOUT = 300;

/** Methods that may be sent twice without doing twice (RFC 9110, 9.2.2). */
const IDEMPOTENT: readonly HttpMethod[] = ['GET', 'HEAD', 'PUT', 'DELETE'];

/** Logs each retry of a request. */
export function logRetries(
  logger: Logger,
  { limits }: RetryPolicy,
): (error: Error, delay: number, attempt: number) => void {
  return ({ message }, delay, attempt) =>
    logger.warn(`${message}; again in ${delay.toFixed(1)} s (try ${attempt} of ${limits.attempts})`);
}

/** A {@link ServiceClient} with the token, the retries and the rate limit of its session. */
export class AuthenticatedClient implements ServiceClient {
  readonly #service: ServiceRequest;
  readonly #parts: ClientParts;

  constructor(service: ServiceRequest, parts: ClientParts) {
    this.#service = service;
    this.#parts = parts;
  }

  async json<T = undefined>(
    method: HttpMethod,
    path: string,
    options: JsonOptions<T> = {},
  ): Promise<JsonAnswer<T>> {
    const { body, contentType = 'application/json', query, headers, validate } = options;
    const { transport, retries, logger } = this.#parts;
    const replay = options.replay ?? IDEMPOTENT.includes(method);
    const payload = body === undefined ? {} : { body: JSON.stringify(body) };
    const type = body === undefined ? {} : { 'content-type': contentType };
    const mayRetry = (error: unknown): boolean =>
      error instanceof OpenStackError && error.retriable && (replay || wasNotTaken(error));
    return await this.#run(`${method} ${path}`, options.signal, (token, signal) => {
      const url = this.#url(path, query, token);
      const request = {
        method,
        url,
        headers: { ...type, ...headers, ...credential(token) },
        ...payload,
        signal,
      };
      return retries.run(
        async () => {
          const answer = await transport.send(request);
          if (!isExpected(answer.status, options.expect)) throw transport.refusal(request, answer);
          const value = validate && transport.parse(request, answer, validate);
          return { status: answer.status, headers: answer.headers, value: value as T };
        },
        { mayRetry, signal, onRetry: logRetries(logger, retries) },
      );
    });
  }

  async put(path: string, body: () => AsyncIterable<Buffer>, options: PutOptions): Promise<PutAnswer> {
    const { size, query, headers, stallTimeout = DEFAULT_STALL_TIMEOUT } = options;
    const { transport } = this.#parts;
    return await this.#run(`PUT ${path}`, options.signal, async (token, signal) => {
      const request = {
        method: 'PUT',
        url: this.#url(path, query, token),
        headers: { 'content-type': 'application/octet-stream', ...headers, ...credential(token) },
      } as const;
      const answer = await transport.put({ ...request, body, size, stallTimeout, signal });
      if (!isExpected(answer.status)) throw transport.refusal(request, answer);
      return { status: answer.status, headers: answer.headers };
    });
  }

  async read(path: string, asked?: AbortSignal): Promise<AsyncIterable<Buffer>> {
    const { transport } = this.#parts;
    return await this.#run(`GET ${path}`, asked, async (token, signal) => {
      const request = { method: 'GET', url: this.#url(path, {}, token), headers: credential(token) } as const;
      const stallTimeout = DEFAULT_STALL_TIMEOUT;
      const { answer, body } = await transport.read({ ...request, stallTimeout, signal });
      if (!isExpected(answer.status)) throw transport.refusal(request, answer);
      return body;
    });
  }

  /** Runs an attempt with a token, and once more with a new one if the cloud does not take it. */
  async #run<T>(
    what: string,
    asked: AbortSignal | undefined,
    attempt: (token: Token | undefined, signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const { tokens, closing, settings } = this.#parts;
    const signal = asked === undefined ? closing : AbortSignal.any([asked, closing]);
    try {
      const token = await tokens?.current(signal);
      try {
        return await attempt(token, signal);
      } catch (error) {
        if (token === undefined || !(error instanceof OpenStackError) || error.status !== 401) throw error;
        tokens?.reject(token);
      }
      return await attempt(await tokens?.current(signal), signal);
    } catch (error) {
      if (!signal.aborted) throw error;
      throw new OpenStackError('aborted', `cloud ${settings.name}: ${what} was aborted`, {
        cause: signal.reason,
      });
    }
  }

  #url(path: string, query: Readonly<Record<string, string>> = {}, token: Token | undefined): URL {
    const { type, endpointOverride, version } = this.#service;
    const { settings } = this.#parts;
    const base = endpointOverride?.replaceAll(PROJECT_ID, token?.projectId ?? '') ?? this.#catalogUrl(token);
    const endpoint = settingsUrl(settings.name, `the endpoint of the service ${type}`, base);
    const url = new URL(`${versioned(endpoint.href, version)}${path}`);
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
    return url;
  }

  #catalogUrl(token: Token | undefined): string {
    const { auth, name } = this.#parts.settings;
    return auth.type === 'none' ? auth.endpoint : findEndpoint(name, token?.catalog ?? [], this.#service);
  }
}

function credential(token: Token | undefined): Record<string, string> {
  return token === undefined ? {} : { 'x-auth-token': token.id };
}

function isExpected(status: number, expected?: readonly number[]): boolean {
  return expected === undefined ? status >= 200 && status < 300 : expected.includes(status);
}

/** The cloud said "not now", or never heard of it: to ask again cannot do twice what was asked. */
function wasNotTaken(error: OpenStackError): boolean {
  const notNow = error.status === 429 || (error.status === 503 && error.retryAfter !== undefined);
  return notNow || neverSent(error);
}
