import { STATUS_CODES } from 'node:http';
import {
  asNetworkError,
  codeOfStatus,
  type NetworkErrorKind,
  retryAfterSeconds,
} from '@nodepool-builder/image-builder/internal';
import { CloudError, type CloudErrorCode, type HttpResponse } from '@nodepool-builder/image-builder/plugin';

const CERTIFICATE_REMEDIES: Readonly<Partial<Record<NetworkErrorKind, string>>> = {
  'unknown-authority':
    'set cacert in clouds.yaml, or REQUESTS_CA_BUNDLE, to the certificate file of the authority that signed it',
  'invalid-certificate': 'ask the operator of the cloud to replace it',
  'other-host-name': 'use the host name in the certificate',
};

/** Creates the error of a request without a response. `request` names the cloud, the method and the path. */
export function networkError(request: string, error: unknown): CloudError {
  const failure = asNetworkError(error);
  const { message: reason, kind, cause } = failure;
  if (failure.isCertificate) {
    const text = `${request}: the certificate is not trusted: ${reason}; ${CERTIFICATE_REMEDIES[kind]}`;
    return new CloudError('certificate-untrusted', text, { cause });
  }
  if (kind === 'not-configured')
    return new CloudError('invalid-settings', `${request}: ${reason}`, { cause });
  const code =
    kind === 'body-too-long' || kind === 'redirect-loop' ? 'invalid-response' : 'connection-failed';
  return new CloudError(code, `${request}: no response: ${reason}`, { cause });
}

/** Returns whether a request failed before it was sent. */
export function neverSent({ code, cause }: CloudError): boolean {
  return code === 'connection-failed' && asNetworkError(cause).kind === 'not-sent';
}

const REMEDIES: Partial<Record<CloudErrorCode, string>> = {
  'auth-failed': 'check the credentials of the cloud, and whether they have expired',
  forbidden: 'give the user a role that may do this',
  'quota-exceeded': 'delete what is not needed, or request a larger quota',
  'not-found': 'check the endpoint if every request fails with this error',
};

/** Remedies for requests that send data. */
const UPLOAD_REMEDIES: Partial<Record<CloudErrorCode, string>> = {
  'wrong-format': 'compare the file format, which qemu-img info shows, with image-type of the provider',
  'too-large': 'ask the operator of the cloud for a higher limit',
};

const REDIRECT_REMEDY = 'set the URL of the service in clouds.yaml: auth_url, or an endpoint override';

/** Glance and Swift report an exceeded quota only in the error message. */
const QUOTA_MESSAGE = /quota|over limit|limit\b.*\bexceeded|exceed\w*\b.*\blimit/i;

/**
 * Converts an error response to an error.
 *
 * @param request names the cloud, the method and the path
 * @param sent method of the request, and secrets to mask
 */
export function responseError(
  request: string,
  { status, headers, body }: HttpResponse,
  { method, secrets = [], now }: { method: string; secrets?: readonly string[]; now: number },
): CloudError {
  const [target] = (status >= 300 && status < 400 ? headers.location : undefined)?.split(/[?#]/, 1) ?? [];
  const message = responseMessage(target === undefined ? body : `to ${target}`, secrets);
  const retryAfter = retryAfterSeconds(headers['retry-after'], now);
  const isRead = method === 'GET' || method === 'HEAD';
  const code = codeOf(status, message, { retryAfter, isRead });
  const quoted = message === '' ? '' : `: ${message.replace(/(?<!\.)\.$/, '')}`;
  const byRequest = REMEDIES[code] ?? (isRead ? undefined : UPLOAD_REMEDIES[code]);
  const known = target === undefined ? byRequest : REDIRECT_REMEDY;
  const remedy = known === undefined ? '' : `; ${known}`;
  const requestId = headers['x-openstack-request-id'];
  const trace = typeof requestId === 'string' ? ` (${requestId})` : '';
  const shown = `${status} ${STATUS_CODES[status] ?? ''}`.trim();
  return new CloudError(code, `${request}: ${shown}${quoted}${remedy}${trace}`, { status, retryAfter });
}

function codeOf(
  status: number,
  message: string,
  { retryAfter, isRead }: { retryAfter: number | undefined; isRead: boolean },
): CloudErrorCode {
  // Reads use no quota: if a read mentions a limit, it means the length of the list.
  if (!isRead && (status === 403 || status === 413) && QUOTA_MESSAGE.test(message)) return 'quota-exceeded';
  // Rackspace's rate limit
  if (status === 413 && retryAfter !== undefined) return 'rate-limited';
  if (status < 400) return 'invalid-response';
  return codeOfStatus(status);
}

const MAX_MESSAGE_LENGTH = 300;

/** First line of webob's plain text errors. */
const STATUS_LINE = /^\s*[45]\d\d [a-z' -]+\n/i;

const ENTITIES: Readonly<Record<string, string>> = {
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  nbsp: ' ',
  amp: '&',
};

/**
 * Extracts the error message from a response body, as one line without markup. Keystone and Nova wrap the message in
 * JSON. Glance sends JSON, HTML or plain text; Swift and proxies send HTML or plain text.
 */
export function responseMessage(body: string, secrets: readonly string[] = []): string {
  // Mask twice: removing markup can split a secret, and unescaping can reveal one.
  const plain = withoutMarkup(withoutSecrets(messageInJson(body) ?? body, secrets))
    .replace(STATUS_LINE, '')
    .replaceAll(/\s+/g, ' ')
    .trim();
  const message = withoutSecrets(plain, secrets);
  return message.length > MAX_MESSAGE_LENGTH ? `${message.slice(0, MAX_MESSAGE_LENGTH)}…` : message;
}

function messageInJson(body: string): string | undefined {
  try {
    return findMessage(JSON.parse(body));
  } catch {
    return undefined;
  }
}

function findMessage(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  if ('message' in value && typeof value.message === 'string') return value.message;
  return Object.values(value).map(findMessage).find(Boolean);
}

function withoutMarkup(text: string): string {
  return text
    .replaceAll(/<(head|style|script|title|h1)\b[\s\S]*?<\/\1>/gi, ' ')
    .replaceAll(/<\/?[a-z][^>]*>/gi, ' ')
    .replaceAll(/&(?:#(\d{1,5})|#x([\da-f]{1,4})|(\w+));/gi, (whole, decimal, hexadecimal, name) => {
      if (name !== undefined) return ENTITIES[name] ?? whole;
      return String.fromCharCode(decimal ?? Number.parseInt(hexadecimal, 16));
    });
}

/** Masks secrets of the request that a cloud may echo: tokens, passwords, and URLs with a signature in the query. */
function withoutSecrets(text: string, secrets: readonly string[]): string {
  const known = secrets.filter((secret) => secret !== '');
  return known
    .reduce((rest, secret) => rest.replaceAll(secret, '…'), text)
    .replaceAll(/(https?:\/\/)[^\s/@"'<>]*@/gi, '$1')
    .replaceAll(/(https?:\/\/[^\s?"'<>]+)\?[^\s"'<>]*/gi, '$1?…');
}
