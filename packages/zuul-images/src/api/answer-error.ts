import { STATUS_CODES } from 'node:http';
import { type HttpAnswer, retryAfterSeconds } from '@nodepool-builder/image-builder/module-kit';
import { ZuulError, type ZuulErrorCode } from './zuul-error.ts';

const CODES: Readonly<Record<number, ZuulErrorCode>> = {
  401: 'auth-failed',
  403: 'forbidden',
  404: 'not-found',
  408: 'connection-failed',
  410: 'not-found',
  422: 'tenant-not-ready',
  429: 'rate-limited',
};

const REMEDIES: Partial<Record<ZuulErrorCode, string>> = {
  'auth-failed': 'configure a token for this tenant, or check whether the configured token is still valid',
  forbidden: "ask the operator of Zuul for an access rule that lets the token's subject read this tenant",
  'not-found': 'check the api-url and the tenant',
  'tenant-unknown': 'the tenant does not exist; correct its name',
  'tenant-not-ready': 'Zuul is still loading the configuration of the tenant',
  redirected: 'set api-url to the address that serves the API; if it requires a login, configure a token',
};

/** Remedies by the error in Zuul's 401. */
const TOKEN_REMEDIES: Readonly<Record<string, string>> = {
  UnauthorizedZuulAdminClaimError:
    'the token has the claim zuul.admin, like all of zuul-admin create-auth-token; configure shared-secret instead',
};

/** Text of the 404 for an unknown tenant, since Zuul 8.0 and before. Other 404s have another text. */
const UNKNOWN_TENANT = /\bunknown tenant\b|\btenant\b[^<]{0,300}\bdoes not exist/i;

/** Name of an error in Zuul's 401, such as `MissingAuthError`. */
const ERROR_NAME = /^\w{1,60}$/;

/** Translates an answer into an error. `request` names the API, the method and the path. */
export function answerError(request: string, answer: HttpAnswer, now: number): ZuulError {
  const { status, headers } = answer;
  const code = UNKNOWN_TENANT.test(answer.body) && status === 404 ? 'tenant-unknown' : codeOf(status);
  // The path and the query of a login page may contain a secret state.
  const origin = URL.parse(headers.location ?? '')?.origin ?? 'elsewhere';
  const target = code === 'redirected' ? ` to ${origin}` : '';
  const reason = errorName(answer.body);
  const remedy = TOKEN_REMEDIES[reason ?? ''] ?? REMEDIES[code];
  return new ZuulError(
    code,
    [
      `${request}: ${status} ${STATUS_CODES[status] ?? ''}`.trim() + target,
      ...(reason === undefined ? [] : [`: ${reason}`]),
      ...(remedy === undefined ? [] : [`; ${remedy}`]),
    ].join(''),
    { status, retryAfter: retryAfterSeconds(headers['retry-after'], now) },
  );
}

function codeOf(status: number): ZuulErrorCode {
  if (status >= 300 && status < 400) return 'redirected';
  if (status < 400) return 'invalid-answer';
  return CODES[status] ?? (status >= 500 ? 'service-unavailable' : 'bad-request');
}

/** The description in a 401 quotes the token's claims: only the name of the error is used. */
function errorName(body: string): string | undefined {
  try {
    const { error }: { error?: unknown } = Object(JSON.parse(body));
    return typeof error === 'string' && ERROR_NAME.test(error) ? error : undefined;
  } catch {
    return undefined;
  }
}
