/** Error codes of services that have images, each with a remedy, and whether a retry may succeed. */
const CLOUD_ERRORS = {
  'auth-failed': { retriable: false, remedy: 'check the credentials, and whether they have expired' },
  forbidden: { retriable: false, remedy: 'give the credentials this permission' },
  'quota-exceeded': { retriable: false, remedy: 'delete what is not needed, or request a larger quota' },
  /** A value in a file of settings that cannot be used. */
  'invalid-settings': { retriable: false, remedy: undefined },
  'credentials-unusable': { retriable: false, remedy: undefined },
  'certificate-untrusted': { retriable: false, remedy: undefined },
  redirected: { retriable: false, remedy: undefined },
  'no-such-service': { retriable: false, remedy: undefined },
  'tenant-unknown': { retriable: false, remedy: undefined },
  'tenant-not-ready': { retriable: true, remedy: undefined },
  'too-large': { retriable: false, remedy: undefined },
  'wrong-format': { retriable: false, remedy: undefined },
  'bad-request': { retriable: false, remedy: undefined },
  'not-found': { retriable: false, remedy: undefined },
  /** An image that the provider did not upload. */
  'not-ours': { retriable: false, remedy: 'delete it by hand if nobody needs it' },
  conflict: { retriable: false, remedy: undefined },
  /** A response that violates the API, such as the page of a proxy. */
  'invalid-response': {
    retriable: false,
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
  'checksum-mismatch': { retriable: true, remedy: undefined },
  'image-missing-on-disk': { retriable: false, remedy: undefined },
  'record-damaged': { retriable: false, remedy: undefined },
  aborted: { retriable: false, remedy: undefined },
} as const satisfies Record<string, { readonly retriable: boolean; readonly remedy: string | undefined }>;

/** Code of a {@link CloudError}. Compare codes, never messages. */
export type CloudErrorCode = keyof typeof CLOUD_ERRORS;

/** Maximum length of a cloud's message in an error. */
const MAX_REASON = 500;

/** Options of a {@link CloudError}. */
export interface CloudErrorOptions extends ErrorOptions {
  /** HTTP status of the response, if there was one. */
  readonly status?: number | undefined;
  /** Seconds, as in `Retry-After`. */
  readonly retryAfter?: number | undefined;
  /** Default: as in the table of codes. */
  readonly retriable?: boolean;
}

/**
 * An error of a cloud or of another service that stores images. Its message names the service, the request, the
 * service's reason, and a remedy if one is known. It never contains a secret, or the query of a URL.
 */
export class CloudError extends Error {
  override readonly name = 'CloudError';
  readonly code: CloudErrorCode;
  /** HTTP status of the response, if there was one. */
  readonly status: number | undefined;
  /** Seconds, as in `Retry-After`. */
  readonly retryAfter: number | undefined;
  /** True if the same call may succeed later without any change, or leaves something that a later call removes. */
  retriable: boolean;

  constructor(code: CloudErrorCode, message: string, options: CloudErrorOptions = {}) {
    super(message, options);
    const { status, retryAfter, retriable = CLOUD_ERRORS[code].retriable } = options;
    this.code = code;
    this.status = status;
    this.retryAfter = retryAfter;
    this.retriable = retriable;
  }

  /** True if the cloud does not offer the service or function, at least not to this user. */
  get refused(): boolean {
    return this.code === 'no-such-service' || REFUSED_STATUSES.includes(this.status);
  }
}

/** HTTP statuses of a request that a cloud does not support or permit. */
const REFUSED_STATUSES: readonly unknown[] = [401, 403, 404, 405, 410, 501];

/**
 * Creates an error with a message of its parts.
 *
 * @param subject the failed request: `provider west: RegisterImage`
 * @param reason the cloud's message, without secrets
 * @param options `remedy` replaces the remedy of the code
 */
export function cloudError(
  code: CloudErrorCode,
  subject: string,
  reason: string,
  options: CloudErrorOptions & { readonly remedy?: string } = {},
): CloudError {
  // The page of a proxy may be gone when the whole operation is repeated.
  const { remedy = CLOUD_ERRORS[code].remedy, retriable = code === 'invalid-response' || undefined } =
    options;
  const shown = reason.length > MAX_REASON ? `${reason.slice(0, MAX_REASON)}…` : reason;
  const message = `${subject}: ${shown}${remedy === undefined ? '' : `; ${remedy}`}`;
  return new CloudError(code, message, { ...options, ...(retriable && { retriable }) });
}

const STATUS_CODES: Readonly<Record<number, CloudErrorCode>> = {
  401: 'auth-failed',
  403: 'forbidden',
  404: 'not-found',
  408: 'connection-failed',
  409: 'conflict',
  410: 'not-found',
  412: 'conflict',
  413: 'too-large',
  415: 'wrong-format',
  429: 'rate-limited',
  501: 'bad-request',
  505: 'bad-request',
  507: 'quota-exceeded',
};

/** Error code of an HTTP status, where the service says nothing else. */
export function codeOfStatus(status: number): CloudErrorCode {
  return STATUS_CODES[status] ?? (status >= 500 ? 'service-unavailable' : 'bad-request');
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
