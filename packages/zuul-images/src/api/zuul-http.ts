import { readFile } from 'node:fs/promises';
import { getCACertificates } from 'node:tls';
import {
  type Clock,
  type HttpAnswer,
  HttpClient,
  type HttpRequest,
  networkFailure,
  parseJson,
  SYSTEM_CLOCK,
} from '@nodepool-builder/image-builder/module-kit';
import type { ZuulSettings } from '../zuul-settings.ts';
import { answerError } from './answer-error.ts';
import { ZuulError, type ZuulErrorCode } from './zuul-error.ts';

/** Default time limit of a request, in seconds: Zuul's limit of a database query is 30. */
const TIMEOUT = 45;

/** `application/json`, with or without parameters. */
const JSON_TYPE = /^application\/json\s*(?:;|$)/i;

/** Settings of a {@link ZuulHttp}. */
export interface ZuulHttpOptions {
  /** PEM certificates of authorities, in addition to Node's. */
  readonly ca?: string | undefined;
  /** Seconds for a whole request. Default 45. */
  readonly timeout?: number;
  readonly clock?: Clock;
}

/** HTTP to a Zuul API or an OpenID provider, with errors of type {@link ZuulError}. */
export class ZuulHttp {
  readonly #client: HttpClient;
  readonly #clock: Clock;

  constructor({ ca, timeout = TIMEOUT, clock = SYSTEM_CLOCK }: ZuulHttpOptions = {}) {
    this.#clock = clock;
    this.#client = new HttpClient({
      timeout,
      ...(ca !== undefined && { ca: [...getCACertificates('default'), ca] }),
    });
  }

  /**
   * Sends a request and reads the JSON of its answer with `read`, whose errors name the invalid field.
   *
   * @param name of the request in messages: the API, the method and the path
   * @throws ZuulError, also for a redirect to another host
   */
  async json<T>(name: string, request: HttpRequest, read: (value: unknown) => T): Promise<T> {
    const headers = { accept: 'application/json', ...request.headers };
    const answer = await this.#client.send({ ...request, headers }).catch((error: unknown) => {
      request.signal?.throwIfAborted();
      throw requestError(name, error);
    });
    if (answer.status !== 200) throw answerError(name, answer, this.#clock.now());
    return readAnswer(name, answer, read);
  }
}

function requestError(name: string, error: unknown): ZuulError {
  const { kind, message, cause, isCertificate } = networkFailure(error);
  const failure = (code: ZuulErrorCode, text: string): ZuulError =>
    new ZuulError(code, `${name}: ${text}`, { cause });
  if (isCertificate) {
    const text = `the certificate is not trusted: ${message}; set ca-file to its authority, or replace it`;
    return failure('certificate-untrusted', text);
  }
  if (kind === 'redirect-loop') return failure('redirected', 'the URL redirects in a loop; correct it');
  if (kind !== 'body-too-long') return failure('connection-failed', `no answer: ${message}`);
  return failure('invalid-answer', `${message}; check that the URL is that of the service`);
}

/** The content type distinguishes an answer from a login page with status 200. */
function readAnswer<T>(name: string, { headers, body }: HttpAnswer, read: (value: unknown) => T): T {
  const type = headers['content-type'] ?? 'no content type';
  if (!JSON_TYPE.test(type)) {
    const reason = `the answer is ${type.replace(/;.*/s, '')} instead of application/json`;
    const remedy = 'check the URL, and whether the server requires a login';
    throw new ZuulError('invalid-answer', `${name}: ${reason}; ${remedy}`);
  }
  try {
    return read(parseJson(body));
  } catch (error) {
    const reason = (error as Error).message;
    throw new ZuulError(
      'invalid-answer',
      `${name}: the answer is invalid: ${reason}; check that the URL is that of the service`,
    );
  }
}

/**
 * Reads `ca-file`: PEM certificates of further authorities, for the API and the artifacts.
 *
 * @throws ZuulError `invalid-settings`
 */
export async function readAuthorities({
  'ca-file': caFile,
}: Pick<ZuulSettings, 'ca-file'>): Promise<string | undefined> {
  if (caFile === undefined) return undefined;
  return await readFile(caFile, 'utf8').catch((cause: unknown) => {
    throw new ZuulError(
      'invalid-settings',
      `ca-file cannot be read: ${(cause as Error).message}; correct the path or its permissions`,
      { cause },
    );
  });
}
