import type { IncomingHttpHeaders } from 'node:http';
import { getCACertificates } from 'node:tls';
import got from 'got';
import { networkError } from './network-error.ts';
import { staysWithHost } from './redirection.ts';
import { ZuulError } from './zuul-error.ts';

/** Zuul lets its database work for 30 seconds on a list of builds before it gives up. */
const TIME_LIMIT = 45_000;

/** A hundred times a usual list of builds, in bytes. */
const LONGEST_BODY = 64 * 1024 * 1024;

/** One request. */
export interface HttpRequest {
  readonly url: URL;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent by POST; without one it is a GET. */
  readonly form?: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

/** An answer as it came, whatever its status. */
export interface HttpAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** Settings of an {@link HttpClient}. */
export interface HttpClientOptions {
  /** Certificates (PEM) of authorities to trust besides the usual ones. */
  readonly ca?: string;
  /** Milliseconds for a whole request; default 45 s, as Zuul itself may take 30. */
  readonly timeLimit?: number;
}

/** HTTP with the time limit, the trust and the redirections that an API with tokens needs. Nothing is tried twice here. */
export class HttpClient {
  readonly #certificateAuthority: string[] | undefined;
  readonly #timeLimit: number;

  constructor({ ca, timeLimit = TIME_LIMIT }: HttpClientOptions = {}) {
    this.#certificateAuthority = ca === undefined ? undefined : [...getCACertificates('default'), ca];
    this.#timeLimit = timeLimit;
  }

  /**
   * Resolves with the answer, whatever its status; that of a redirection to another host, too.
   *
   * @param name of the request, for the error
   * @throws ZuulError `connection-failed`, `certificate-untrusted`, `redirected`, `invalid-answer`
   * @throws the signal's reason
   */
  async send(name: string, { url, headers = {}, form, signal }: HttpRequest): Promise<HttpAnswer> {
    signal.throwIfAborted();
    const tooLong = new AbortController();
    try {
      const request = got(url, {
        method: form === undefined ? 'GET' : 'POST',
        headers: { accept: 'application/json', ...headers },
        ...(form !== undefined && { form }),
        ...(this.#certificateAuthority !== undefined && {
          https: { certificateAuthority: this.#certificateAuthority },
        }),
        signal: AbortSignal.any([signal, tooLong.signal]),
        throwHttpErrors: false,
        retry: { limit: 0 },
        timeout: { request: this.#timeLimit },
        followRedirect: ({ url: from, headers: { location = '' } }) =>
          form === undefined && staysWithHost(from, location),
      });
      void request.on('downloadProgress', ({ transferred }) => {
        if (transferred > LONGEST_BODY) tooLong.abort();
      });
      const answer = await request;
      return { status: answer.statusCode, headers: answer.headers, body: answer.body };
    } catch (error) {
      signal.throwIfAborted();
      if (tooLong.signal.aborted) {
        throw new ZuulError(
          'invalid-answer',
          `${name}: the answer is longer than ${LONGEST_BODY} bytes; check that the URL is that of the service`,
        );
      }
      throw networkError(name, error);
    }
  }
}
