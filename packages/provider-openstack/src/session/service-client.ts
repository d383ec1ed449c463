import { CloudError, type HttpRequest, type HttpResponse } from '@nodepool-builder/image-builder/plugin';
import type { ServiceSettings } from '../cloud-settings.ts';
import { findEndpoint, settingsUrl, versioned } from './catalog.ts';
import type { OpenStackSession } from './openstack-session.ts';
import { neverSent } from './request-errors.ts';
import type { Token } from './token-request.ts';

type Method = NonNullable<HttpRequest['method']>;

/** A service and the version of its API. */
export interface ServiceRequest extends ServiceSettings {
  /** API version, such as `v2`, appended to a URL without a version. */
  readonly version?: string;
}

export interface RequestOptions {
  readonly query?: Readonly<Record<string, string>>;
  /** Headers that override the default content type. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
  /** Name from shade, which is part of statsd keys in existing dashboards. Default: the request is not reported. */
  readonly task?: string;
}

/** Validates a parsed JSON body, like JsonReader. Errors become `invalid-response`. */
export interface BodyReader<T> {
  /** @param value undefined if the body is empty or not JSON */
  check(value: unknown): T;
}

export interface JsonOptions<T> extends RequestOptions {
  /** Body, sent as JSON. */
  readonly body?: unknown;
  /** Statuses that count as success. Default: 200 to 299. */
  readonly expect?: readonly number[];
  /** Validates the response. Default: the value is `undefined`. */
  readonly reader?: BodyReader<T>;
  /**
   * True if the request may be sent again if its response is lost. Default: false for POST and PATCH, whose first
   * attempt may have taken effect, else true. A 429 or 503 response is retried in any case.
   */
  readonly replay?: boolean;
}

/** A response with a value from {@link JsonOptions.reader}. */
export type JsonResponse<T> = HttpResponse & { readonly value: T };

export interface PutOptions extends RequestOptions {
  /** Size of the body in bytes. */
  readonly size: number;
}

/** Placeholder of keystoneauth in an endpoint override. */
const PROJECT_ID = /[%$]\((?:project|tenant)_id\)s/g;

/** Idempotent methods (RFC 9110, 9.2.2). */
const IDEMPOTENT: readonly Method[] = ['GET', 'HEAD', 'PUT', 'DELETE'];

/**
 * Client of one service of a cloud. It handles token, endpoint and retries. Paths are relative to the versioned
 * endpoint: `/images`. All methods throw {@link CloudError}, `aborted` with the signal's reason as the cause.
 */
export class ServiceClient {
  readonly #service: ServiceRequest;
  readonly #session: OpenStackSession;

  /** @param service without which the first request fails */
  constructor(service: ServiceRequest, session: OpenStackSession) {
    this.#service = service;
    this.#session = session;
  }

  /** Name of the cloud in messages. */
  get cloud(): string {
    return this.#session.settings.name;
  }

  /** Logs what was ignored in a response. */
  warn(message: string): void {
    this.#session.transport.warn(`cloud ${this.cloud}: ${message}`);
  }

  /** Sends JSON and reads JSON. Retries after transient errors, and once with a new token after a 401. */
  async json<T = undefined>(
    method: Method,
    path: string,
    options: JsonOptions<T> = {},
  ): Promise<JsonResponse<T>> {
    const { body, headers, reader, replay = IDEMPOTENT.includes(method) } = options;
    const { transport } = this.#session;
    const content =
      body === undefined
        ? undefined
        : { type: { 'content-type': 'application/json' }, text: JSON.stringify(body) };
    return await this.#run(method, path, options, async ({ url, credential, signal }) => {
      const request = {
        method,
        url,
        headers: { ...content?.type, ...headers, ...credential },
        ...(content && { body: content.text }),
        signal,
      };
      const send = async (): Promise<JsonResponse<T>> => {
        const response = await transport.send(request);
        if (!isExpected(response.status, options.expect)) throw transport.responseError(request, response);
        const value = reader && transport.parse(request, response, (json) => reader.check(json));
        return { ...response, value: value as T };
      };
      return await transport.retry(signal, send, (error) => {
        return error.retriable && (replay || hadNoEffect(error));
      });
    });
  }

  /** Sends a GET and returns the value. */
  async get<T>(path: string, reader: BodyReader<T>, options: Omit<JsonOptions<T>, 'reader'>): Promise<T> {
    return (await this.json('GET', path, { ...options, reader })).value;
  }

  /** Deletes a resource; a missing resource is not an error. */
  async delete(path: string, options: RequestOptions): Promise<void> {
    await this.json('DELETE', path, { ...options, expect: [200, 202, 204, 404] });
  }

  /**
   * Sends a stream without buffering it in memory. `body` is called when the request starts, and again after a 401.
   * After other errors the caller retries. Errors of the body are thrown unchanged.
   */
  async put(path: string, body: () => AsyncIterable<Buffer>, options: PutOptions): Promise<HttpResponse> {
    const { size, headers } = options;
    const { transport } = this.#session;
    return await this.#run('PUT', path, options, async ({ url, credential, signal }) => {
      const fields = { 'content-type': 'application/octet-stream', ...headers, ...credential };
      const request = { method: 'PUT', url, headers: fields } as const;
      const response = await transport.put({ ...request, body, size, signal });
      if (!isExpected(response.status)) throw transport.responseError(request, response);
      return response;
    });
  }

  /**
   * Streams a body of any length. The caller retries after an error. The iteration throws `connection-failed` for an
   * error in mid-stream, such as no byte for a long time.
   */
  async read(path: string, options: RequestOptions): Promise<AsyncIterable<Buffer>> {
    const { transport } = this.#session;
    return await this.#run('GET', path, options, async ({ url, credential: headers, signal }) => {
      const request = { method: 'GET', url, headers } as const;
      const { response, body } = await transport.read({ ...request, signal });
      if (!isExpected(response.status)) throw transport.responseError(request, response);
      return body;
    });
  }

  /** Runs an attempt with a token, and once more with a new token after a 401. */
  async #run<T>(
    method: Method,
    path: string,
    { query, signal: requested, task }: RequestOptions,
    attempt: (prepared: {
      readonly url: URL;
      readonly credential: Readonly<Record<string, string>>;
      readonly signal: AbortSignal;
    }) => Promise<T>,
  ): Promise<T> {
    const { tokens, closing, settings, onTask } = this.#session;
    const signal = requested === undefined ? closing : AbortSignal.any([requested, closing]);
    const started = performance.now();
    const attemptWith = async (token?: Token): Promise<T> => {
      const credential: Record<string, string> = token === undefined ? {} : { 'x-auth-token': token.value };
      return await attempt({ url: this.#url(path, query, token), credential, signal });
    };
    try {
      const result = await (tokens === undefined ? attemptWith() : tokens.run(signal, attemptWith));
      if (task !== undefined) onTask?.(task, performance.now() - started);
      return result;
    } catch (error) {
      if (!signal.aborted) throw error;
      throw new CloudError('aborted', `cloud ${settings.name}: ${method} ${path} was aborted`, {
        cause: signal.reason,
      });
    }
  }

  #url(path: string, query: Readonly<Record<string, string>> = {}, token: Token | undefined): URL {
    const { type, endpointOverride, version } = this.#service;
    const { name, auth } = this.#session.settings;
    const fromCatalog = (): string =>
      auth.type === 'none' ? auth.endpoint : findEndpoint(name, token?.catalog ?? [], this.#service);
    const base = endpointOverride?.replaceAll(PROJECT_ID, token?.projectId ?? '') ?? fromCatalog();
    const endpoint = settingsUrl(name, `the endpoint of the service ${type}`, base);
    const url = new URL(`${versioned(endpoint.href, version)}${path}`);
    for (const [key, value] of Object.entries(query)) url.searchParams.set(key, value);
    return url;
  }
}

function isExpected(status: number, expected?: readonly number[]): boolean {
  return expected === undefined ? status >= 200 && status < 300 : expected.includes(status);
}

/** Returns whether the cloud requested a retry or never received the request, so that even a POST can be repeated. */
function hadNoEffect(error: CloudError): boolean {
  const isRetryAsked = error.status === 429 || (error.status === 503 && error.retryAfter !== undefined);
  return isRetryAsked || neverSent(error);
}
