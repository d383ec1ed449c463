/** Error codes, and whether a retry may succeed. */
export const OPENSTACK_ERRORS = {
  'invalid-settings': { retriable: false },
  'auth-failed': { retriable: false },
  forbidden: { retriable: false },
  'quota-exceeded': { retriable: false },
  'bad-request': { retriable: false },
  'not-found': { retriable: false },
  conflict: { retriable: false },
  'too-large': { retriable: false },
  'wrong-format': { retriable: false },
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

export interface OpenStackErrorOptions extends ErrorOptions {
  readonly status?: number | undefined;
  readonly retryAfter?: number | undefined;
}

/**
 * An error of an OpenStack cloud. The message has the cloud, the request (method and path), the cloud's own message and
 * the remedy, but no token, no password and no query of a URL.
 */
export class OpenStackError extends Error {
  override readonly name = 'OpenStackError';
  readonly code: OpenStackErrorCode;
  /** HTTP status of the answer, if any. */
  readonly status: number | undefined;
  /** Seconds, as in `Retry-After`. */
  readonly retryAfter: number | undefined;

  constructor(code: OpenStackErrorCode, message: string, options: OpenStackErrorOptions = {}) {
    super(message, options);
    this.code = code;
    this.status = options.status;
    this.retryAfter = options.retryAfter;
  }

  /** Whether the same call may succeed later without any change. */
  get retriable(): boolean {
    return OPENSTACK_ERRORS[this.code].retriable;
  }

  /** Whether the cloud lacks the service or the function, or lacks it for this user. */
  get refused(): boolean {
    return this.code === 'no-such-service' || REFUSALS.includes(this.status);
  }
}

/** Statuses of requests that a cloud does not know, or does not permit. */
const REFUSALS: readonly unknown[] = [401, 403, 404, 405, 410, 501];

/** For `catch`: replaces the error `not-found` with undefined. */
export function unlessAbsent(error: unknown): undefined {
  if (error instanceof OpenStackError && error.code === 'not-found') return;
  throw error;
}
