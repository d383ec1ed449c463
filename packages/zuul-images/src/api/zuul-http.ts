import { readFile } from 'node:fs/promises';
import { STATUS_CODES } from 'node:http';
import {
  asNetworkError,
  codeOfStatus,
  parseJson,
  retryAfterSeconds,
} from '@nodepool-builder/image-builder/internal';
import {
  CloudError,
  type CloudErrorCode,
  HttpAgent,
  HttpClient,
  type HttpRequest,
  type HttpResponse,
} from '@nodepool-builder/image-builder/plugin';
import type { ZuulSettings } from '../zuul-settings.ts';

/** Default timeout of a request, in seconds. Zuul's timeout of a database query is 30 s. */
const TIMEOUT = 45;

/** `application/json`, with or without parameters. */
const JSON_TYPE = /^application\/json\s*(?:;|$)/i;

const REMEDIES: Partial<Record<CloudErrorCode, string>> = {
  'auth-failed': 'configure a token for this tenant, or check whether the configured token is still valid',
  forbidden: "ask the operator of Zuul for an access rule that lets the token's subject read this tenant",
  'not-found': 'check the api-url',
  'tenant-unknown': 'the tenant does not exist; correct its name in api-url',
  'tenant-not-ready': 'Zuul is still loading the configuration of the tenant',
  redirected: 'set api-url to the address that serves the API; if it requires a login, configure a token',
};

/** Remedies by the error in Zuul's 401. The section and `max_validity_time` are in zuul.conf. */
const TOKEN_REMEDIES: Readonly<Record<string, string>> = {
  UnauthorizedZuulAdminClaimError:
    'the token has the claim zuul.admin, like all of zuul-admin create-auth-token; configure shared-secret instead',
  IncorrectAudienceError:
    'set audience of shared-secret, or the claim aud of another token, to client_id of the section auth in zuul.conf',
  IssuerUnknownError:
    'set issuer of shared-secret, or the claim iss of another token, to issuer_id of the section auth in zuul.conf',
  AuthTokenInvalidSignatureException:
    'correct the file of shared-secret, or the key of another token: the section auth in zuul.conf has another one',
  TokenExpiredError:
    'renew the token, compare the clocks of this host and of Zuul, and check max_validity_time in zuul.conf',
  AuthTokenUnauthorizedException:
    'compare the clocks of this host and of Zuul, and the algorithm of the token',
  AuthTokenUndecodedException: 'auth must provide a JSON Web Token',
  MissingClaimError: 'the token needs the claims aud, exp, iat, iss and sub',
  MissingUIDClaimError: 'the token needs the claim that uid_claim names in zuul.conf',
  JWKSException:
    'Zuul cannot find the key of the token; compare issuer of client-credentials with the section auth in zuul.conf',
};

/** Texts of the 404 for an unknown tenant, before and since Zuul 8.0. Other 404s have another text. */
const UNKNOWN_TENANT = /\bunknown tenant\b|\btenant\b[^<]{0,300}\bdoes not exist/i;

/** Name of an error in Zuul's 401, such as `MissingAuthError`. */
const ERROR_NAME = /^\w{1,60}$/;

/** Settings of a {@link ZuulHttp}. */
export interface ZuulHttpOptions {
  /** PEM certificates of additional authorities. */
  readonly furtherCa?: string | undefined;
  /** Timeout of a whole request in seconds. Default 45. */
  readonly timeout?: number;
}

/** HTTP to a Zuul API or an OpenID provider, with errors of type {@link CloudError}. */
export class ZuulHttp {
  readonly #client: HttpClient;

  constructor({ furtherCa, timeout = TIMEOUT }: ZuulHttpOptions = {}) {
    this.#client = new HttpClient({ timeout, agent: new HttpAgent({ furtherCa }) });
  }

  /**
   * Sends a request and reads the JSON of its response with `read`, whose errors name the invalid field.
   *
   * @param name of the request in messages: the API, the method and the path
   * @throws CloudError, also for a redirect to another host
   */
  async json<T>(name: string, request: HttpRequest, read: (value: unknown) => T): Promise<T> {
    const headers = { accept: 'application/json', ...request.headers };
    const response = await this.#client.send({ ...request, headers }).catch((error: unknown) => {
      request.signal?.throwIfAborted();
      throw requestError(name, error);
    });
    if (response.status !== 200) throw responseError(name, response);
    return readResponse(name, response, read);
  }
}

function requestError(name: string, error: unknown): CloudError {
  const { kind, message, cause, isCertificate } = asNetworkError(error);
  const failure = (code: CloudErrorCode, text: string): CloudError =>
    new CloudError(code, `${name}: ${text}`, { cause });
  if (isCertificate) {
    const text = `the certificate is not trusted: ${message}; set ca-file or REQUESTS_CA_BUNDLE to its authority, or replace it`;
    return failure('certificate-untrusted', text);
  }
  if (kind === 'not-configured') return failure('invalid-settings', message);
  if (kind === 'redirect-loop') return failure('redirected', 'the URL redirects in a loop; correct it');
  if (kind !== 'body-too-long') return failure('connection-failed', `no response: ${message}`);
  return failure('invalid-response', `${message}; check that the URL belongs to the service`);
}

/** Translates a response into an error. `request` names the API, the method and the path. */
function responseError(request: string, response: HttpResponse): CloudError {
  const { status, headers } = response;
  const code = UNKNOWN_TENANT.test(response.body) && status === 404 ? 'tenant-unknown' : codeOf(status);
  // The path and the query of a login page may contain a secret state.
  const origin = URL.parse(headers.location ?? '')?.origin ?? 'elsewhere';
  const target = code === 'redirected' ? ` to ${origin}` : '';
  const reason = errorName(response.body);
  const remedy = TOKEN_REMEDIES[reason ?? ''] ?? REMEDIES[code];
  return new CloudError(
    code,
    [
      `${request}: ${status} ${STATUS_CODES[status] ?? ''}`.trim() + target,
      ...(reason === undefined ? [] : [`: ${reason}`]),
      ...(remedy === undefined ? [] : [`; ${remedy}`]),
    ].join(''),
    { status, retryAfter: retryAfterSeconds(headers['retry-after'], Date.now()) },
  );
}

function codeOf(status: number): CloudErrorCode {
  if (status >= 300 && status < 400) return 'redirected';
  if (status < 400) return 'invalid-response';
  return status === 422 ? 'tenant-not-ready' : codeOfStatus(status);
}

/** Returns the name of the error in a 401. The description is not used, because it quotes the token's claims. */
function errorName(body: string): string | undefined {
  try {
    const { error }: { error?: unknown } = Object(JSON.parse(body));
    return typeof error === 'string' && ERROR_NAME.test(error) ? error : undefined;
  } catch {
    return undefined;
  }
}

/** Reads a response. Its content type distinguishes it from a login page with status 200. */
function readResponse<T>(name: string, { headers, body }: HttpResponse, read: (value: unknown) => T): T {
  const type = headers['content-type'] ?? 'no content type';
  if (!JSON_TYPE.test(type)) {
    const reason = `the response is ${type.replace(/;.*/s, '')} instead of application/json`;
    const remedy = 'check the URL, and whether the server requires a login';
    throw new CloudError('invalid-response', `${name}: ${reason}; ${remedy}`);
  }
  try {
    return read(parseJson(body));
  } catch (error) {
    const reason = (error as Error).message;
    throw new CloudError(
      'invalid-response',
      `${name}: the response is invalid: ${reason}; check that the URL belongs to the service`,
    );
  }
}

/**
 * Reads the PEM certificates of `ca-file`, for the API and the artifacts; undefined without a file.
 *
 * @throws CloudError `invalid-settings`
 */
export async function readAuthorities({
  'ca-file': caFile,
}: Pick<ZuulSettings, 'ca-file'>): Promise<string | undefined> {
  if (caFile === undefined) return undefined;
  return await readFile(caFile, 'utf8').catch((cause: unknown) => {
    throw new CloudError(
      'invalid-settings',
      `cannot read ca-file: ${(cause as Error).message}; correct the path or its permissions`,
      { cause },
    );
  });
}
