/** What can go wrong with a cloud, and whether trying the same again later may help. */
export const OPENSTACK_ERRORS = {
  'invalid-settings': { retriable: false },
  'auth-failed': { retriable: false },
  forbidden: { retriable: false },
  'quota-exceeded': { retriable: false },
  'bad-request': { retriable: false },
  'not-found': { retriable: false },
  conflict: { retriable: false },
  'too-large': { retriable: false },
  'rate-limited': { retriable: true },
  'service-unavailable': { retriable: true },
  'connection-failed': { retriable: true },
  'certificate-untrusted': { retriable: false },
  'no-such-service': { retriable: false },
  'invalid-answer': { retriable: false },
  'image-failed': { retriable: true },
  'image-timeout': { retriable: true },
  'checksum-mismatch': { retriable: true },
  'image-missing-on-disk': { retriable: false },
  aborted: { retriable: false },
} as const;

/** The code of an {@link OpenStackError}; compare codes, never messages. */
export type OpenStackErrorCode = keyof typeof OPENSTACK_ERRORS;

/** What an {@link OpenStackError} carries besides its message. */
export interface OpenStackErrorOptions extends ErrorOptions {
  readonly status?: number | undefined;
  readonly retryAfter?: number | undefined;
}

/**
 * Every error of an OpenStack cloud. Its message names the cloud, the request (method and path), the cloud's own
 * words and the remedy; it never holds a token, a password or the query of a URL.
 */
export class OpenStackError extends Error {
  override readonly name = 'OpenStackError';
  readonly code: OpenStackErrorCode;
  /** The HTTP status of the answer, if there was one. */
  readonly status: number | undefined;
  /** Seconds that the cloud asked to wait before the next try (`Retry-After`). */
  readonly retryAfter: number | undefined;

  constructor(code: OpenStackErrorCode, message: string, options: OpenStackErrorOptions = {}) {
    super(message, options);
    this.code = code;
    this.status = options.status;
    this.retryAfter = options.retryAfter;
  }

  /** Whether the same call may succeed later without a change by anyone. */
  get retriable(): boolean {
    return OPENSTACK_ERRORS[this.code].retriable;
  }
}
