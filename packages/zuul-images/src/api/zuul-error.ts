/** Code of a {@link ZuulError}. Compare codes, never messages. */
export type ZuulErrorCode =
  | 'invalid-settings'
  | 'credentials-unusable'
  | 'auth-failed'
  | 'forbidden'
  | 'tenant-unknown'
  | 'tenant-not-ready'
  | 'bad-request'
  | 'not-found'
  | 'redirected'
  | 'rate-limited'
  | 'service-unavailable'
  | 'connection-failed'
  | 'certificate-untrusted'
  | 'invalid-answer'
  | 'record-damaged';

const RETRIABLE: ReadonlySet<ZuulErrorCode> = new Set([
  'tenant-not-ready',
  'rate-limited',
  'service-unavailable',
  'connection-failed',
]);

/**
 * Error of a Zuul API, or of something that it needs. The message names the API, the request (method and path), the
 * reason and the remedy. It never contains a token, a secret or the query of a URL.
 */
export class ZuulError extends Error {
  override readonly name = 'ZuulError';
  readonly code: ZuulErrorCode;
  /** HTTP status, if there was a response. */
  readonly status: number | undefined;
  /** Value of `Retry-After` in seconds. */
  readonly retryAfter: number | undefined;

  constructor(
    code: ZuulErrorCode,
    message: string,
    options: ErrorOptions & { readonly status?: number; readonly retryAfter?: number | undefined } = {},
  ) {
    super(message, options);
    this.code = code;
    this.status = options.status;
    this.retryAfter = options.retryAfter;
  }

  /** Whether the same call may succeed later. */
  get retriable(): boolean {
    return RETRIABLE.has(this.code);
  }
}
