import { codeOfStatus } from '@nodepool-builder/image-builder/internal';
import {
  type CloudErrorCode,
  cloudError,
  type RemedyTable,
  remedyFor,
} from '@nodepool-builder/image-builder/plugin';

/** Members of SDK errors. */
interface SdkError extends Error {
  readonly code?: unknown;
  readonly statusCode?: unknown;
}

/**
 * Errors which mean that Microsoft Entra ID did not respond or was unavailable, although the credentials may be valid.
 */
const ENTRA_FAILED = /\b(?:network_error|endpoints_resolution_error|server_error|temporarily_unavailable)\b/;

/** Start of the message of an operation that failed after its request was accepted. */
const OPERATION_FAILED = 'The long-running operation has failed. ';

/** Errors of `@azure/identity`. */
const IDENTITY_ERRORS: ReadonlySet<string> = new Set([
  'AggregateAuthenticationError',
  'AuthenticationError',
  'AuthenticationRequiredError',
  'CredentialUnavailableError',
]);

/** Azure error codes that are more specific than the HTTP status. */
const BY_CODE: Readonly<Record<string, CloudErrorCode>> = {
  AuthorizationFailed: 'forbidden',
  LinkedAuthorizationFailed: 'forbidden',
  QuotaExceeded: 'quota-exceeded',
  ResourceQuotaExceeded: 'quota-exceeded',
  TooManyRequests: 'rate-limited',
  ServerBusy: 'rate-limited',
  RetryableError: 'service-unavailable',
  ResourceNotFound: 'not-found',
};

/** Remedies for protections that the provider itself never sets. */
const PROTECTIONS: RemedyTable = [
  [/ScopeLocked|scope\(s\) are locked/, 'remove the lock, which az lock list shows, if nobody needs it'],
  [
    /BlockDeletionBeforeEndOfLife/i,
    'set blockDeletionBeforeEndOfLife of the image version to false if nobody needs it',
  ],
  [
    /immutable due to|ImmutableDueTo|legal.?hold/i,
    'end the immutability policy or the legal hold of the blob',
  ],
];

/**
 * Converts an SDK error. Does not keep it as the cause, because it contains the request with its secrets.
 *
 * @param subject what failed: `provider azure: creation of disk d`
 */
export function azureError(subject: string, error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const { name, message, code, statusCode } = error as SdkError;
  const reason = (text: string): string => withoutSecrets(firstParagraph(text));
  if (IDENTITY_ERRORS.has(name)) {
    const isPassing = ENTRA_FAILED.test(message) || statusCode === 429 || Number(statusCode) >= 500;
    return cloudError(isPassing ? 'service-unavailable' : 'auth-failed', subject, reason(message));
  }
  if (message.startsWith(OPERATION_FAILED)) {
    const text = message.slice(OPERATION_FAILED.length);
    return cloudError(isQuota(text) ? 'quota-exceeded' : 'image-failed', subject, reason(text));
  }
  if (name !== 'RestError') return error;
  const azureCode = typeof code === 'string' ? code : '';
  const shown = azureCode === '' || message.includes(azureCode) ? message : `${azureCode}: ${message}`;
  if (typeof statusCode !== 'number') return cloudError('connection-failed', subject, reason(shown));
  const remedy = remedyFor(shown, PROTECTIONS);
  return cloudError(codeOf(statusCode, azureCode, message), subject, reason(shown), remedy);
}

function codeOf(status: number, code: string, message: string): CloudErrorCode {
  if (status !== 404 && isQuota(`${code} ${message}`)) return 'quota-exceeded';
  return BY_CODE[code] ?? codeOfStatus(status);
}

function isQuota(text: string): boolean {
  return /quota/i.test(text);
}

/** Returns the first paragraph of a message. The blob service appends lines with the request and the time. */
function firstParagraph(text: string): string {
  return text.split('\nRequestId:')[0]?.trim() ?? text;
}

/** Masks URLs with a signature, which grant access to a disk. */
export function withoutSecrets(text: string): string {
  return text
    .replaceAll(/([?&](?:sig|se|sp|si|sv|st|spr)=)[^&\s"']+/gi, '$1…')
    .replaceAll(/Bearer \S+/g, 'Bearer …');
}
