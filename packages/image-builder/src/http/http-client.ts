import type { Agent as HttpAgent, IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Agent as HttpsAgent } from 'node:https';
import { NetworkFailure, networkFailure } from './network-failure.ts';

/** Default limit of a body: a hundred times a usual list of Zuul's builds, in bytes. */
const LONGEST_BODY = 64 * 1024 * 1024;

/** A request whose body and answer fit into memory. */
export interface HttpRequest {
  /** Default: POST with a form, else GET. */
  readonly method?: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly url: URL;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Credentials, sent as a form. They are never sent on to the target of a redirect. */
  readonly form?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
}

/** An answer with any status. */
export interface HttpAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** Settings of an {@link HttpClient}. */
export interface HttpClientOptions {
  /** Time limit of a request, in seconds. */
  readonly timeout: number;
  /** Limit of an answer's body, in bytes. Default 64 MiB. */
  readonly longestBody?: number;
  /** They decide about certificates and proxies. Default: those of Node. */
  readonly agents?: { readonly http?: HttpAgent; readonly https?: HttpsAgent };
  /** PEM certificates of authorities, in place of Node's. */
  readonly ca?: readonly string[];
}

/** HTTP for APIs, with limits of time and length. It sends each request once; {@link RetryPolicy} repeats. */
export class HttpClient {
  readonly #options: HttpClientOptions;

  constructor(options: HttpClientOptions) {
    this.#options = options;
  }

  /**
   * Resolves with an answer of any status. A redirect to another host is an answer, too: tokens stay with the host.
   *
   * @throws NetworkFailure
   * @throws the signal's reason
   */
  async send({ url, headers, body, form, signal, ...request }: HttpRequest): Promise<HttpAnswer> {
    signal?.throwIfAborted();
    const { method = form === undefined ? 'GET' : 'POST' } = request;
    const { timeout, agents, ca, longestBody = LONGEST_BODY } = this.#options;
    const { default: got } = await import('got'); // not at the top: many commands send no request
    const tooLong = new AbortController();
    try {
      const sending = got(url, {
        method,
        headers: { ...headers },
        ...(body !== undefined && { body }),
        ...(form !== undefined && { form: { ...form } }),
        ...(agents !== undefined && { agent: agents }),
        ...(ca !== undefined && { https: { certificateAuthority: [...ca] } }),
        signal: signal === undefined ? tooLong.signal : AbortSignal.any([signal, tooLong.signal]),
        throwHttpErrors: false,
        retry: { limit: 0 },
        timeout: { request: timeout * 1000 },
        followRedirect: ({ url: from, headers: { location = '' } }) =>
          form === undefined && staysWithHost(from, location),
      });
      void sending.on('downloadProgress', ({ transferred }) => {
        if (transferred > longestBody) tooLong.abort();
      });
      const answer = await sending;
      return { status: answer.statusCode, headers: answer.headers, body: answer.body };
    } catch (error) {
      signal?.throwIfAborted();
      if (!tooLong.signal.aborted) throw networkFailure(error);
      throw new NetworkFailure('body-too-long', `the answer is longer than ${longestBody} bytes`);
    }
  }
}

/**
 * Whether the target of a redirect may get the token: the same host and port, or `https://host/` after
 * `http://host/`.
 */
export function staysWithHost(from: string, location: string): boolean {
  const to = URL.parse(location, from);
  if (to === null) return false;
  const { protocol, hostname, port, origin } = new URL(from);
  const isUpgrade = protocol === 'http:' && port === '' && to.origin === `https://${hostname}`;
  return to.origin === origin || isUpgrade;
}

/** Body of a response, or the part of it that arrived: the status matters more than an error while reading. */
export async function textOf(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) chunks.push(chunk);
  } catch {
    // the server closed the connection
  }
  return Buffer.concat(chunks).toString();
}
