import { noResponse } from '@nodepool-builder/image-builder/internal';
import {
  CloudError,
  type CloudErrorCode,
  cloudError,
  type RemedyTable,
  remedyFor,
} from '@nodepool-builder/image-builder/plugin';

/** AWS error codes that are more specific than their HTTP status. */
const CODES: readonly (readonly [pattern: RegExp, code: CloudErrorCode])[] = [
  [/Throttl|RequestLimitExceeded|TooManyRequests|SlowDown|ConcurrentLimitExceeded/, 'rate-limited'],
  [/LimitExceeded|QuotaExceeded|Insufficient\w*Capacity/, 'quota-exceeded'],
  [/^UnauthorizedOperation$|AccessDenied|^Forbidden$|OptInRequired/, 'forbidden'],
  [
    /AuthFailure|InvalidClientTokenId|UnrecognizedClient|SignatureDoesNotMatch|Expired(?:Token|Request)/,
    'auth-failed',
  ],
  [/^(?:CredentialsProviderError|TokenProviderError|InvalidAccessKeyId)$/, 'auth-failed'],
  [/NotFound|NoSuch|^InvalidConversionTaskId|^InvalidAMIID\.Unavailable$/, 'not-found'],
  [/Duplicate|Conflict|InUse|IncorrectState|IncorrectInstanceState/, 'conflict'],
];

/** Remedies for protections that the provider itself never sets. */
const PROTECTIONS: RemedyTable = [
  [
    /deregistration.?protect|protect\w* (?:from|against) deregistration/i,
    'run aws ec2 disable-image-deregistration-protection for the AMI if nobody needs it',
  ],
  [
    /snapshot\b.*\block|SnapshotLock/i,
    'run aws ec2 unlock-snapshot if nobody needs it, or wait until its lock expires',
  ],
  [
    /object.?lock|legal.?hold|retention|WORM/i,
    'end the legal hold or the retention of the object, then delete it',
  ],
];

/** Common members of SDK errors. */
interface SdkError extends Error {
  readonly $metadata?: { readonly httpStatusCode?: number };
  readonly $response?: unknown;
}

/** Returns the AWS error code: `InvalidAMIName.Duplicate`. */
export function awsCode(error: unknown): string {
  const origin = error instanceof CloudError ? error.cause : error;
  return origin instanceof Error ? origin.name : '';
}

/**
 * Converts an SDK error.
 *
 * @param subject the provider and the request: `provider aws: RegisterImage`
 */
export function awsError(subject: string, error: unknown): Error {
  if (error instanceof CloudError || !(error instanceof Error)) return error as Error;
  const { $metadata: { httpStatusCode: status = 0 } = {}, name, message } = error as SdkError;
  const [, known] = CODES.find(([pattern]) => pattern.test(name)) ?? [];
  if (known === undefined && status === 0) return noResponse(subject, error);
  const code = known ?? (status >= 500 ? 'service-unavailable' : 'bad-request');
  const reason = `${message} (${name})`;
  return cloudError(code, subject, reason, { cause: error, ...remedyFor(reason, PROTECTIONS) });
}
