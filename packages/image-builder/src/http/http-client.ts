import type { Agent, IncomingHttpHeaders } from 'node:http';
import type { Agent as TlsAgent } from 'node:https';
import { type CloudError, cloudError } from '../cloud-error.ts';
import { errnoOf } from '../system-error.ts';
import { HttpAgent } from './http-agent.ts';
import { responseMeter } from './list-pages.ts';
import { HttpSettingsError } from './proxy-choice.ts';

/** A request whose body and response fit into memory. */
export interface HttpRequest {
  /** HTTP method. Default: POST with a form, else GET. */
  readonly method?: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly url: URL;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  /** Credentials, sent as a form. They are never sent to the target of a redirect. */
  readonly form?: Readonly<Record<string, string>>;
  /** True to follow redirects. If not, a redirect is returned as the response. Default true. */
  readonly followsRedirects?: boolean;
  readonly signal?: AbortSignal | undefined;
}

/** A response with any status. */
export interface HttpResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** Settings of an {@link HttpClient}. */
export interface HttpClientOptions {
  /** Timeout of a request, in seconds. */
  readonly timeout: number;
  /** Maximum size of a response's body, in bytes. Default: the limit of lists, {@link responseMeter}. */
  readonly maxBodySize?: number;
  /** Determines certificates and proxies. Default: an {@link HttpAgent} with its defaults. */
  readonly agent?: Agent;
}

/** HTTP client for APIs, with limits of time and size. It sends each request once; {@link RetryPolicy} retries. */
export class HttpClient {
  readonly #options: HttpClientOptions;
  readonly #agent: Agent;

  constructor(options: HttpClientOptions) {
    this.#options = options;
    this.#agent = options.agent ?? new HttpAgent();
  }

  /**
   * Resolves with the response, whatever its status. Redirects to another host are returned, not followed, so tokens
   * are never sent there.
   *
   * @throws NetworkError
   * @throws the signal's reason
   */
  async send(sent: HttpRequest): Promise<HttpResponse> {
    const { url, headers, body, form, signal, followsRedirects = true, ...request } = sent;
    signal?.throwIfAborted();
    const { method = form === undefined ? 'GET' : 'POST' } = request;
    const { timeout, maxBodySize } = this.#options;
    const { default: got, TimeoutError } = await import('got'); // imported on demand, because many commands send no request
    const meter = responseMeter(url.host, maxBodySize);
    const tooLong = new AbortController();
    let status: number | undefined;
    try {
      const sending = got(url, {
        method,
        headers: { ...headers },
        ...(body !== undefined && { body }),
        ...(form !== undefined && { form: { ...form } }),
        agent: { http: this.#agent, https: this.#agent as TlsAgent },
        signal: signal === undefined ? tooLong.signal : AbortSignal.any([signal, tooLong.signal]),
        throwHttpErrors: false,
        retry: { limit: 0 },
        timeout: { request: timeout * 1000 },
        followRedirect: (response) =>
          followsRedirects && form === undefined && isFollowed(method, response.statusCode, response),
      });
      // got's own event waits for the whole response body.
      void sending.on('request', (outgoing) =>
        outgoing.once('response', ({ statusCode }) => {
          status = statusCode;
        }),
      );
      void sending.on('downloadProgress', ({ transferred }) => {
        if (transferred > meter.limit) tooLong.abort();
      });
      const response = await sending;
      meter.add(response.rawBody.length);
      return { status: response.statusCode, headers: response.headers, body: response.body };
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof TimeoutError) {
        const reason = `${url.host} sent no complete response within ${timeout} s`;
        throw new NetworkError('no-response', reason);
      }
      if (!tooLong.signal.aborted) throw asNetworkError(error);
      throw new NetworkError('body-too-long', meter.reason, { status });
    }
  }
}

/**
 * Returns whether the target of a redirect gets the same request, because got would turn some into a GET, or drop their
 * body.
 */
function isFollowed(
  method: string,
  status: number,
  { url: from, headers: { location = '' } }: { url: string; headers: IncomingHttpHeaders },
): boolean {
  if (!staysWithHost(from, location)) return false;
  if (method === 'GET' || method === 'HEAD' || status === 307 || status === 308) return true;
  return status !== 303 && URL.parse(location, from)?.origin === new URL(from).origin;
}

/**
 * Returns whether a redirect may get the token: to the same host and port, or to `https://host/` after `http://host/`.
 */
export function staysWithHost(from: string, location: string): boolean {
  const to = URL.parse(location, from);
  if (to === null) return false;
  const { protocol, hostname, port, origin } = new URL(from);
  const isUpgrade = protocol === 'http:' && port === '' && to.origin === `https://${hostname}`;
  return to.origin === origin || isUpgrade;
}

/**
 * Returns the path and query of a link at the scheme, host and port of a configured URL. A server behind a load
 * balancer may return links to other hosts, to which a token must not be sent.
 */
export function atOrigin(link: URL, configured: URL): URL {
  const url = new URL(configured.origin);
  url.pathname = link.pathname;
  url.search = link.search;
  return url;
}

/** Kind of a {@link NetworkError}. */
export type NetworkErrorKind =
  /** The certificate is signed by an unknown authority. */
  | 'unknown-authority'
  /** The certificate has expired, was revoked, or is not for servers. */
  | 'invalid-certificate'
  /** The certificate is for another host name. */
  | 'other-host-name'
  | 'redirect-loop'
  | 'body-too-long'
  /**
   * A setting of this host prevents the request, such as a proxy that requires a password. The reason contains the
   * remedy.
   */
  | 'not-configured'
  /** There was no connection, so the request had no effect. */
  | 'not-sent'
  /** The server may have received the request. */
  | 'no-response';

/** Codes of OpenSSL and Node. */
const KINDS: Readonly<Record<string, NetworkErrorKind>> = {
  DEPTH_ZERO_SELF_SIGNED_CERT: 'unknown-authority',
  SELF_SIGNED_CERT_IN_CHAIN: 'unknown-authority',
  UNABLE_TO_GET_ISSUER_CERT: 'unknown-authority',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'unknown-authority',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'unknown-authority',
  CERT_UNTRUSTED: 'unknown-authority',
  CERT_SIGNATURE_FAILURE: 'unknown-authority',
  INVALID_CA: 'unknown-authority',
  CERT_HAS_EXPIRED: 'invalid-certificate',
  CERT_NOT_YET_VALID: 'invalid-certificate',
  CERT_REVOKED: 'invalid-certificate',
  INVALID_PURPOSE: 'invalid-certificate',
  ERR_TLS_CERT_ALTNAME_INVALID: 'other-host-name',
  ERR_TOO_MANY_REDIRECTS: 'redirect-loop',
  ECONNREFUSED: 'not-sent',
  ENOTFOUND: 'not-sent',
  EAI_AGAIN: 'not-sent',
  EHOSTUNREACH: 'not-sent',
  ENETUNREACH: 'not-sent',
  ERR_PROXY_TUNNEL: 'not-sent',
};

/** A request without a usable response. The message is only the reason, without headers and user information. */
export class NetworkError extends Error {
  override readonly name = 'NetworkError';
  readonly kind: NetworkErrorKind;
  /** Status of a response whose body is too long. */
  readonly status: number | undefined;

  constructor(
    kind: NetworkErrorKind,
    reason: string,
    options?: ErrorOptions & { readonly status?: number | undefined },
  ) {
    super(reason, options);
    this.kind = kind;
    this.status = options?.status;
  }

  /** True if the server's certificate caused the error. */
  get isCertificate(): boolean {
    return ['unknown-authority', 'invalid-certificate', 'other-host-name'].includes(this.kind);
  }
}

/** Reason in a message of OpenSSL, which also contains a line break and the location in its source. */
const TLS_ERROR = /:SSL routines:[^:]*:(?<tlsError>[^:]+):/;

/** OpenSSL's reasons for a reply that is not TLS. */
const NOT_TLS =
  /^(?:wrong version number|packet length too long|record layer failure|http request|https proxy request)$/;

/** Describes a reply that does not use the protocol of the URL; undefined for other errors. */
function protocolError(message: string, code = ''): string | undefined {
  const tlsError = TLS_ERROR.exec(message)?.groups?.tlsError;
  if (tlsError !== undefined && NOT_TLS.test(tlsError)) {
    return `the server does not speak TLS there (${tlsError}); correct https in the URL, or its port`;
  }
  if (tlsError !== undefined) return `the TLS handshake failed: ${tlsError}`;
  if (!code.startsWith('HPE_')) return undefined;
  return `the server does not speak HTTP there (${message}); correct http in the URL, or its port`;
}

/** Translates an error of got or `node:http`. */
export function asNetworkError(error: unknown): NetworkError {
  if (error instanceof NetworkError) return error;
  const isOfGot = error instanceof Error && 'options' in error;
  // An error of got contains the whole request, with its credentials, so only its cause is kept.
  const source = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  const cause = isOfGot && source === error ? undefined : source;
  const code = errnoOf(error) ?? errnoOf(cause);
  const message = (cause instanceof Error && cause.message) || code || 'unknown error';
  const kind = cause instanceof HttpSettingsError ? 'not-configured' : (KINDS[code ?? ''] ?? 'no-response');
  return new NetworkError(kind, protocolError(message, code) ?? message, { cause });
}

const CERTIFICATE_REMEDIES: Readonly<Partial<Record<NetworkErrorKind, string>>> = {
  'unknown-authority': 'name the file of the authority that signed its certificate in REQUESTS_CA_BUNDLE',
  'invalid-certificate': 'ask the operator of the service to replace its certificate',
  'other-host-name': 'use the host name in its certificate',
};

/**
 * Converts the error of a request without a response.
 *
 * @param subject the failed request: `provider west: RegisterImage`
 * @param options the host of the service, and remedies that replace those of certificates
 */
export function noResponse(
  subject: string,
  error: unknown,
  options: { readonly from?: string; readonly remedies?: typeof CERTIFICATE_REMEDIES } = {},
): CloudError {
  const { from, remedies = {} } = options;
  const { kind, message } = asNetworkError(error);
  const code = kind === 'not-configured' ? 'bad-request' : 'connection-failed';
  const remedy = remedies[kind] ?? CERTIFICATE_REMEDIES[kind];
  const reason = `no response${from === undefined ? '' : ` from ${from}`}: ${message}`;
  return cloudError(code, subject, reason, { cause: error, ...(remedy && { remedy }) });
}
