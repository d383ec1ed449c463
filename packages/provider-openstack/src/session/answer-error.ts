import { type IncomingHttpHeaders, STATUS_CODES } from 'node:http';
import { OpenStackError, type OpenStackErrorCode } from '../openstack-error.ts';
import { cloudWords } from './cloud-words.ts';

/** An answer as it came, whatever its status. */
export interface HttpAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

const CODES: Readonly<Record<number, OpenStackErrorCode>> = {
  401: 'auth-failed',
  403: 'forbidden',
  404: 'not-found',
  408: 'connection-failed',
  409: 'conflict',
  410: 'not-found',
  413: 'too-large',
  429: 'rate-limited',
  500: 'service-unavailable',
  502: 'service-unavailable',
  503: 'service-unavailable',
  504: 'service-unavailable',
  507: 'quota-exceeded',
};

const REMEDIES: Partial<Record<OpenStackErrorCode, string>> = {
  'auth-failed': 'check the credentials of the cloud, and whether they have expired',
  forbidden: 'give the user a role that may do this',
  'quota-exceeded': 'delete what is not needed, or ask for a larger quota',
  'not-found': 'check the endpoint if every request ends so',
  'too-large': 'ask the operator of the cloud for a higher limit',
};

/** Glance and Swift tell an exhausted quota by their words alone. */
const QUOTA_WORDS = /quota|over limit|limit\b.*\bexceeded|exceed\w*\b.*\blimit/i;

/** The error that an answer means. `request` names the cloud, the method and the path; `secrets` are blanked. */
export function answerError(
  request: string,
  answer: HttpAnswer,
  { secrets = [], now }: { secrets?: readonly string[]; now: number },
): OpenStackError {
  const words = cloudWords(isRedirection(answer) ? `to ${answer.headers.location}` : answer.body, secrets);
  const retryAfter = secondsToWait(answer.headers['retry-after'], now);
  const code = codeOf(answer.status, words, retryAfter);
  const said = words === '' ? '' : `: ${words}`;
  const remedy = REMEDIES[code] === undefined ? '' : `; ${REMEDIES[code]}`;
  const requestId = answer.headers['x-openstack-request-id'];
  const trace = typeof requestId === 'string' ? ` (${requestId})` : '';
  const status = `${answer.status} ${STATUS_CODES[answer.status] ?? ''}`.trim();
  return new OpenStackError(code, `${request}: ${status}${said}${remedy}${trace}`, {
    status: answer.status,
    retryAfter,
  });
}

function isRedirection({ status, headers }: HttpAnswer): boolean {
  return status >= 300 && status < 400 && headers.location !== undefined;
}

function codeOf(status: number, words: string, retryAfter: number | undefined): OpenStackErrorCode {
  if ((status === 403 || status === 413) && QUOTA_WORDS.test(words)) return 'quota-exceeded';
  // Rackspace's rate limit
  if (status === 413 && retryAfter !== undefined) return 'rate-limited';
  if (status < 400) return 'invalid-answer';
  return CODES[status] ?? (status > 505 ? 'service-unavailable' : 'bad-request');
}

/** `Retry-After` is a number of seconds or a date (RFC 9110, 10.2.3). */
function secondsToWait(header: string | undefined, now: number): number | undefined {
  if (header === undefined) return undefined;
  if (/^\d+$/.test(header)) return Number(header);
  const date = Date.parse(header);
  return Number.isNaN(date) ? undefined : Math.max(0, (date - now) / 1000);
}
