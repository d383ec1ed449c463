import type { Logger } from './types.ts';

/** Error codes of clouds, each with a remedy, and whether a retry may succeed. */
const CLOUD_ERRORS = {
  'auth-failed': { retriable: false, remedy: 'check the credentials, and whether they have expired' },
  forbidden: { retriable: false, remedy: 'give the credentials this permission' },
  'quota-exceeded': { retriable: false, remedy: 'delete what is not needed, or request a larger quota' },
  'bad-request': { retriable: false, remedy: undefined },
  'not-found': { retriable: false, remedy: undefined },
  /** An image that the provider did not upload. */
  'not-ours': { retriable: false, remedy: 'delete it by hand if nobody needs it' },
  conflict: { retriable: false, remedy: undefined },
  /** A response that violates the API, such as the page of a proxy. */
  'invalid-answer': {
    retriable: true,
    remedy: 'check that the endpoint belongs to the service, and that no proxy responds in its place',
  },
  'endless-list': { retriable: false, remedy: 'ask the operator of the service, or of a proxy before it' },
  'response-too-large': {
    retriable: false,
    remedy: 'check that the endpoint belongs to the service, and that no proxy responds in its place',
  },
  'rate-limited': { retriable: true, remedy: undefined },
  'service-unavailable': { retriable: true, remedy: undefined },
  'connection-failed': { retriable: true, remedy: undefined },
  'image-failed': { retriable: true, remedy: undefined },
  'image-timeout': { retriable: true, remedy: undefined },
} as const satisfies Record<string, { readonly retriable: boolean; readonly remedy: string | undefined }>;

/** Code of a {@link CloudError}. Compare codes, never messages. */
export type CloudErrorCode = keyof typeof CLOUD_ERRORS;

/** Maximum length of a cloud's message in an error. */
const LONGEST_MESSAGE = 500;

/**
 * An error of a cloud. Its message contains the provider, the request, the cloud's reason, and a remedy if one is
 * known.
 */
export class CloudError extends Error {
  override readonly name = 'CloudError';
  readonly code: CloudErrorCode;
  /** Whether the same call may succeed later without any change, or leaves something that a later call removes. */
  retriable: boolean;

  /**
   * @param subject the failed request: `provider west: RegisterImage`
   * @param reason the cloud's message, without secrets
   * @param options `remedy` replaces the remedy of the code
   */
  constructor(
    code: CloudErrorCode,
    subject: string,
    reason: string,
    options?: ErrorOptions & { readonly remedy?: string },
  ) {
    const { retriable } = CLOUD_ERRORS[code];
    const { remedy = CLOUD_ERRORS[code].remedy } = options ?? {};
    const shown = reason.length > LONGEST_MESSAGE ? `${reason.slice(0, LONGEST_MESSAGE)}…` : reason;
    super(`${subject}: ${shown}${remedy === undefined ? '' : `; ${remedy}`}`, options);
    this.code = code;
    this.retriable = retriable;
  }
}

/** Remedies for reasons of a cloud that need another remedy than their code, such as a locked image. */
export type RemedyTable = readonly (readonly [reason: RegExp, remedy: string])[];

/** Returns the option `remedy` of a {@link CloudError} for a reason in a table. */
export function remedyFor(reason: string, table: RemedyTable): { readonly remedy?: string } {
  const [, remedy] = table.find(([pattern]) => pattern.test(reason)) ?? [];
  return remedy === undefined ? {} : { remedy };
}

/** Handler for `catch` that replaces the error `not-found` with undefined. */
export function unlessAbsent(error: unknown): undefined {
  if (error instanceof CloudError && error.code === 'not-found') return;
  throw error;
}

/** Timeout of the cleanup after a failed upload, in milliseconds. The upload's own signal may have aborted. */
const CLEANUP_TIME = 120_000;

/** A failed upload. */
interface FailedUpload {
  /** `providers[].name`. */
  readonly provider: string;
  readonly imageId: string;
  readonly logger?: Pick<Logger, 'warn'> | undefined;
  /** The upload's own signal: after an abort, the upload stays on record anyway. */
  readonly signal: AbortSignal;
}

/**
 * Cleans up after a failed upload.
 *
 * @returns the error to throw. It is retriable if the cleanup failed, because the upload stays on record, and its
 * discard repeats the cleanup
 */
export async function cleanUpAfter(
  error: unknown,
  { provider, imageId, logger, signal }: FailedUpload,
  remove: (signal: AbortSignal) => Promise<void>,
): Promise<unknown> {
  try {
    await remove(AbortSignal.timeout(CLEANUP_TIME));
    return error;
  } catch (failure) {
    const subject = `provider ${provider}: upload of image ${imageId}`;
    const details = { error: failure };
    logger?.warn(
      `${subject}: the cleanup after its failure failed and is repeated: ${String(failure)}`,
      details,
    );
    if (signal.aborted) return error;
    if (!(error instanceof CloudError)) {
      const reason = `${error instanceof Error ? error.message : String(error)}; its cleanup also failed`;
      return new CloudError('image-failed', subject, reason, { cause: error });
    }
    error.retriable = true;
    return error;
  }
}
