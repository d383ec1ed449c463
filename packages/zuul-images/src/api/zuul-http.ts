import { getCACertificates } from 'node:tls';
import {
  type HttpAnswer,
  HttpClient,
  type HttpRequest,
  type NetworkFailureKind,
  networkFailure,
} from '@nodepool-builder/image-builder/module-kit';
import { ZuulError, type ZuulErrorCode } from './zuul-error.ts';

/** Default time limit of a request, in seconds: Zuul gives its database 30 for a list of builds. */
const TIMEOUT = 45;

const CODES: Readonly<Record<NetworkFailureKind, ZuulErrorCode>> = {
  'unknown-authority': 'certificate-untrusted',
  'invalid-certificate': 'certificate-untrusted',
  'other-host-name': 'certificate-untrusted',
  'redirect-loop': 'redirected',
  'body-too-long': 'invalid-answer',
  'not-sent': 'connection-failed',
  'no-answer': 'connection-failed',
};

/** Settings of a {@link ZuulHttp}. */
export interface ZuulHttpOptions {
  /** PEM certificates of authorities to trust besides Node's. */
  readonly ca?: string;
  /** Seconds for a whole request. Default 45. */
  readonly timeout?: number;
}

/** HTTP to a Zuul API or an OpenID provider, with errors of type {@link ZuulError}. */
export class ZuulHttp {
  readonly #client: HttpClient;

  constructor({ ca, timeout = TIMEOUT }: ZuulHttpOptions = {}) {
    this.#client = new HttpClient({
      timeout,
      ...(ca !== undefined && { ca: [...getCACertificates('default'), ca] }),
    });
  }

  /**
   * Resolves with an answer of any status, including a redirect to another host.
   *
   * @param name of the request, for the error
   * @throws ZuulError `connection-failed`, `certificate-untrusted`, `redirected`, `invalid-answer`
   * @throws the signal's reason
   */
  async send(name: string, request: HttpRequest): Promise<HttpAnswer> {
    try {
      const headers = { accept: 'application/json', ...request.headers };
      return await this.#client.send({ ...request, headers });
    } catch (error) {
      request.signal?.throwIfAborted();
      throw requestError(name, error);
    }
  }
}

function requestError(name: string, error: unknown): ZuulError {
  const failure = networkFailure(error);
  const { kind, message: reason, cause } = failure;
  const code = CODES[kind];
  if (failure.isCertificate) {
    const text = `${name}: the certificate is not trusted: ${reason}; name the authority that signed it, or replace it`;
    return new ZuulError(code, text, { cause });
  }
  if (kind === 'redirect-loop')
    return new ZuulError(code, `${name}: the URL redirects in a loop; correct it`);
  if (kind !== 'body-too-long') return new ZuulError(code, `${name}: no answer: ${reason}`, { cause });
  return new ZuulError(code, `${name}: ${reason}; check that the URL is that of the service`);
}
