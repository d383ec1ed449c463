/** What can go wrong with a Zuul API, and whether trying the same again later may help. */
export const ZUUL_ERRORS = {
  'invalid-settings': { retriable: false },
  'credentials-unusable': { retriable: false },
  'auth-failed': { retriable: false },
  forbidden: { retriable: false },
  'tenant-unknown': { retriable: false },
  'tenant-not-ready': { retriable: true },
  'bad-request': { retriable: false },
  'not-found': { retriable: false },
  redirected: { retriable: false },
  'rate-limited': { retriable: true },
  'service-unavailable': { retriable: true },
  'connection-failed': { retriable: true },
  'certificate-untrusted': { retriable: false },
  'invalid-answer': { retriable: false },
  'memory-damaged': { retriable: false },
} as const;

/** The code of a {@link ZuulError}; compare codes, never messages. */
export type ZuulErrorCode = keyof typeof ZUUL_ERRORS;

/** What a {@link ZuulError} carries besides its message. */
export interface ZuulErrorOptions extends ErrorOptions {
  readonly status?: number | undefined;
  readonly retryAfter?: number | undefined;
}

/**
 * Every error of a Zuul API and of what it takes to ask one. Its message names the API, the request (method and
 * path), the reason and the remedy; it never holds a token, a secret or the query of a URL.
 */
export class ZuulError extends Error {
  override readonly name = 'ZuulError';
  readonly code: ZuulErrorCode;
  /** The HTTP status of the answer, if there was one. */
  readonly status: number | undefined;
  /** Seconds that the server asked to wait before the next try (`Retry-After`). */
  readonly retryAfter: number | undefined;

  constructor(code: ZuulErrorCode, message: string, options: ZuulErrorOptions = {}) {
    super(message, options);
    this.code = code;
    this.status = options.status;
    this.retryAfter = options.retryAfter;
  }

  /** Whether the same call may succeed later without a change by anyone. */
  get retriable(): boolean {
    return ZUUL_ERRORS[this.code].retriable;
  }
}
