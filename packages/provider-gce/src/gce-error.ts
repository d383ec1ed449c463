import type { protos } from '@google-cloud/compute';
import { ImageError } from '@nodepool-builder/image-builder';
import { codeOfStatus, noResponse } from '@nodepool-builder/image-builder/internal';
import {
  CloudError,
  type CloudErrorCode,
  cloudError,
  type RemedyTable,
  remedyFor,
} from '@nodepool-builder/image-builder/plugin';

type Operation = protos.google.cloud.compute.v1.IOperation;
type OperationFailure = protos.google.cloud.compute.v1.IErrors;

/** Google's error reasons that are more specific than their HTTP status. */
const REASONS: readonly (readonly [pattern: RegExp, code: CloudErrorCode])[] = [
  [/rate.?limit.?exceeded|operation.?rate.?exceeded|RESOURCE_EXHAUSTED/i, 'rate-limited'],
  [/quota/i, 'quota-exceeded'],
];

/** Reasons in the error list of an operation. */
const OPERATION_REASONS: typeof REASONS = [...REASONS, [/permission|forbidden|access.?denied/i, 'forbidden']];

/** Priority of the codes if an operation failed for several reasons: the first one becomes the error code. */
const BY_WEIGHT: readonly CloudErrorCode[] = ['quota-exceeded', 'forbidden', 'rate-limited'];

/** gRPC status codes, which the SDK returns instead of HTTP status codes: 409 becomes 10. */
const GRPC: Readonly<Record<number, number>> = {
  2: 500,
  3: 400,
  4: 504,
  5: 404,
  6: 409,
  7: 403,
  8: 429,
  9: 400,
  10: 409,
  12: 501,
  13: 500,
  14: 503,
  16: 401,
};

/** SDK errors for an object that is incomplete or has a wrong checksum. */
const MISMATCHES: readonly unknown[] = ['FILE_NO_UPLOAD', 'FILE_NO_UPLOAD_DELETE'];

/** Token endpoint errors that are not caused by the credentials. */
const PASSING = /^(?:internal_failure|server_error|temporarily_unavailable)$/;

/** Remedies for rejected credentials, by Google's reason. */
const REMEDIES: RemedyTable = [
  [/timeframe|\biat\b|\bexp\b|stale|not yet valid/i, 'set the clock of this host, for example by NTP'],
  [
    /JWT signature|account not found|deleted|disabled/i,
    'the key or its account was deleted or disabled: create a key, and replace the file',
  ],
  [/expired or revoked|rapt|reauth/i, 'log in again: gcloud auth application-default login'],
];

/** Remedies for protections that the provider itself never sets. */
const PROTECTIONS: RemedyTable = [
  [
    /retention (?:policy|period)|object retention|retentionPolicyNotMet|soft.?delete policy/i,
    'wait until the retention expires, or remove the retention policy from the bucket',
  ],
  [/under active .*hold|ObjectUnderActiveHold/i, 'release the hold of the object if nobody needs it'],
  [/deletion.?protection/i, 'disable its deletion protection if nobody needs it'],
];

const REMEDY = 'check whether the key or its account was deleted or disabled, and the clock of this host';

interface SdkError extends Error {
  readonly code?: number | string;
  readonly reason?: string;
  readonly errors?: readonly { readonly reason?: string; readonly message?: string }[];
  readonly response?: { readonly status?: number; readonly data?: unknown };
}

/**
 * Converts an SDK error.
 *
 * @param subject what failed: `provider gce: InsertImage`
 * @param credentials name of the credentials in messages
 */
export function googleError(subject: string, error: unknown, credentials: string): Error {
  // An ImageError comes from the file on this host.
  if (!(error instanceof Error) || error instanceof CloudError || error instanceof ImageError) {
    return error as Error;
  }
  // The SDK wraps the error of a response that GceCredentials rejects.
  if (error.cause instanceof CloudError) return error.cause;
  const { error: problem, reason: why } = tokenProblem(error) ?? {};
  if (problem !== undefined && !PASSING.test(problem)) {
    return refused(subject, `${credentials} were rejected: ${why}`);
  }
  if (problem !== undefined) {
    return cloudError('service-unavailable', subject, withoutSecrets(`no token: ${why}`));
  }
  const { code = 0, message, errors, reason } = error as SdkError;
  if (MISMATCHES.includes(code) || error instanceof RangeError) {
    return cloudError('image-failed', subject, 'the object differs from what was sent', { cause: error });
  }
  const reasons = [reason, ...(errors ?? []).map((one) => one.reason), message].join(' ');
  const number = typeof code === 'number' ? (GRPC[code] ?? code) : Number(code) || 0;
  const known = codeOf(REASONS, reasons);
  if (number === 0 && known === undefined) return noResponse(subject, error);
  if (number === 401) return refused(subject, `${credentials} were rejected: ${message}`);
  const byStatus = codeOfStatus(number);
  const meant = number === 403 || number === 429 || number === 0 ? (known ?? byStatus) : byStatus;
  return cloudError(meant, subject, message, { cause: error, ...remedyFor(reasons, PROTECTIONS) });
}

/**
 * Creates the error of rejected credentials. The SDK error is not its cause, because it contains the request with its
 * secrets.
 */
function refused(subject: string, reason: string): CloudError {
  const remedy = { remedy: REMEDY, ...remedyFor(reason, REMEDIES) };
  return cloudError('auth-failed', subject, withoutSecrets(reason), remedy);
}

/** Extracts why a token endpoint issued no token (RFC 6749, 5.2). The SDK nests its errors. */
function tokenProblem(error: unknown): { readonly error: string; readonly reason: string } | undefined {
  for (let inner = error; inner instanceof Error; inner = inner.cause) {
    const { status = 0, data } = (inner as SdkError).response ?? {};
    const { error: code, error_description: description } = Object(data) as Record<string, unknown>;
    if (status < 500 && status !== 429 && typeof code === 'string') {
      const isDescribed = typeof description === 'string' && description !== '';
      return { error: code, reason: isDescribed ? `${code}: ${description}` : code };
    }
  }
  return undefined;
}

/** Masks tokens in a message from Google. */
function withoutSecrets(text: string): string {
  return text.replaceAll(/\b(?:eyJ|ya29\.)[\w.-]+/g, '…');
}

/**
 * Converts the errors of a failed operation to one error with all reasons. Undefined if the operation has not failed.
 *
 * @param subject what failed: `provider gce: image debian`
 */
export function operationError(subject: string, operation: Operation): CloudError | undefined {
  const { error, httpErrorStatusCode: status, httpErrorMessage } = operation;
  const failures = error?.errors ?? [];
  if (failures.length === 0 && !status) return undefined;
  const codes = failures.map(({ code }) => codeOf(OPERATION_REASONS, code ?? ''));
  const byStatus = status === 403 || status === 429 ? codeOfStatus(status) : undefined;
  const meant = BY_WEIGHT.find((code) => codes.includes(code)) ?? byStatus ?? 'image-failed';
  const reasons = failures.length > 0 ? failures.map(describe).join('; ') : `${httpErrorMessage} (${status})`;
  return cloudError(meant, subject, reasons, remedyFor(reasons, PROTECTIONS));
}

function codeOf(reasons: typeof REASONS, text: string): CloudErrorCode | undefined {
  return reasons.find(([pattern]) => pattern.test(text))?.[1];
}

/** Formats one reason of a failed operation: message, code, and the quota concerned. */
function describe({ code, message, errorDetails }: OperationFailure): string {
  const quotas = (errorDetails ?? []).flatMap(({ quotaInfo }) => {
    if (!quotaInfo?.metricName) return [];
    const { metricName, limitName, limit, dimensions } = quotaInfo;
    const places = Object.entries(dimensions ?? {}).map(([key, value]) => `${key} ${value}`);
    const name = limitName ? `${metricName}, ${limitName}` : metricName;
    return [`quota ${[name, ...(limit ? [`limit ${limit}`] : []), ...places].join(', ')}`];
  });
  return `${message ?? ''} (${[code ?? '', ...quotas].filter(Boolean).join('; ')})`.trim();
}
