import { STATUS_CODES } from 'node:http';
import { type HttpAnswer, retryAfterSeconds } from '@nodepool-builder/image-builder/module-kit';
import { OpenStackError, type OpenStackErrorCode } from '../openstack-error.ts';
import { errorMessage } from './error-message.ts';

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

/** Glance and Swift report an exhausted quota only in the message. */
const QUOTA_MESSAGE = /quota|over limit|limit\b.*\bexceeded|exceed\w*\b.*\blimit/i;

/** Translates an answer into an error. `request` names the cloud, the method and the path; `secrets` are masked. */
export function answerError(
  request: string,
  answer: HttpAnswer,
  { secrets = [], now }: { secrets?: readonly string[]; now: number },
): OpenStackError {
  const message = errorMessage(
    isRedirection(answer) ? `to ${answer.headers.location}` : answer.body,
    secrets,
  );
  const retryAfter = retryAfterSeconds(answer.headers['retry-after'], now);
  const code = codeOf(answer.status, message, retryAfter);
  const said = message === '' ? '' : `: ${message}`;
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

function codeOf(status: number, message: string, retryAfter: number | undefined): OpenStackErrorCode {
  if ((status === 403 || status === 413) && QUOTA_MESSAGE.test(message)) return 'quota-exceeded';
  // Rackspace's rate limit
  if (status === 413 && retryAfter !== undefined) return 'rate-limited';
  if (status < 400) return 'invalid-answer';
  return CODES[status] ?? (status > 505 ? 'service-unavailable' : 'bad-request');
}
