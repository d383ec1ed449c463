/** The error codes. If `retriable`, the same call may succeed later without any change. */
export const GEARMAN_ERRORS = {
  'bad-magic': { retriable: false },
  'unknown-packet': { retriable: false },
  'packet-unexpected': { retriable: false },
  'packet-too-large': { retriable: false },
  'argument-missing': { retriable: false },
  'invalid-argument': { retriable: false },
  'reply-malformed': { retriable: false },
  'reply-too-large': { retriable: false },
  'peer-too-slow': { retriable: true },
  'listen-failed': { retriable: true },
  'journal-failed': { retriable: true },
  'connect-failed': { retriable: true },
  'connection-lost': { retriable: true },
  'server-silent': { retriable: true },
  'server-error': { retriable: false },
  'job-failed': { retriable: false },
  'job-exception': { retriable: false },
  'job-lost': { retriable: true },
  'job-timeout': { retriable: true },
  'events-dropped': { retriable: false },
  internal: { retriable: false },
  aborted: { retriable: false },
  closed: { retriable: false },
} as const;

/** The code of a {@link GearmanError}. Compare codes, never messages. */
export type GearmanErrorCode = keyof typeof GEARMAN_ERRORS;

/** Base class of all errors of this package. The message says what failed, why, and what to do. */
export class GearmanError extends Error {
  override readonly name: string = 'GearmanError';
  readonly code: GearmanErrorCode;

  constructor(code: GearmanErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }

  /** True if the same call may succeed later without any change. */
  get retriable(): boolean {
    return GEARMAN_ERRORS[this.code].retriable;
  }
}

/** The peer violated the protocol. Its connection is closed, unless the packets that follow can still be decoded. */
export class ProtocolError extends GearmanError {
  override readonly name = 'ProtocolError';
}

/** A server is unreachable, closed the connection, or did not reply in time. */
export class ConnectionError extends GearmanError {
  override readonly name = 'ConnectionError';
}

/** The server replied to a request with an ERROR packet. */
export class ServerError extends GearmanError {
  override readonly name = 'ServerError';
  /** The server's error code, for instance `JOB_NOT_FOUND` or `QUEUE_ERROR`. */
  readonly serverCode: string;

  constructor(serverCode: string, text: string) {
    super('server-error', `the job server replied ${serverCode}: ${text}`);
    this.serverCode = serverCode;
  }
}

/** The worker ended the job with WORK_FAIL, or with an exception that the server does not forward. */
export class JobFailedError extends GearmanError {
  override readonly name = 'JobFailedError';
  readonly handle: string;
  /** The payload of the job's last WORK_WARNING, if any. WORK_FAIL cannot transmit a reason. */
  readonly warning: Buffer | undefined;

  constructor(functionName: string, handle: string, warning?: Buffer) {
    super('job-failed', `job ${handle} of ${functionName} failed; see the worker's log for the reason`);
    this.handle = handle;
    this.warning = warning;
  }
}

/** The worker ended the job with WORK_EXCEPTION. */
export class JobExceptionError extends GearmanError {
  override readonly name = 'JobExceptionError';
  readonly handle: string;
  /** The payload of the packet, usually one line of text. */
  readonly data: Buffer;
  /** The payload of the job's last WORK_WARNING, if any. */
  readonly warning: Buffer | undefined;

  constructor(functionName: string, handle: string, data: Buffer, warning?: Buffer) {
    super(
      'job-exception',
      `job ${handle} of ${functionName} ended in an exception: ${data.toString('utf8')}`,
    );
    this.handle = handle;
    this.data = data;
    this.warning = warning;
  }
}

/** The connection was lost while the job was in flight, or the server no longer knows the job. It may have run. */
export class JobLostError extends GearmanError {
  override readonly name = 'JobLostError';

  constructor(functionName: string, handle: string | undefined, options?: ErrorOptions) {
    const which = handle === undefined ? `a job of ${functionName}` : `job ${handle} of ${functionName}`;
    const reason = options?.cause instanceof Error ? `: ${options.cause.message}` : '';
    super('job-lost', `${which} was lost in flight and may have run${reason}`, options);
  }
}

/**
 * Thrown by a handler to end its job with WORK_FAIL, for an expected failure. Any other error ends the job with
 * WORK_EXCEPTION.
 */
export class WorkFailError extends GearmanError {
  override readonly name = 'WorkFailError';

  constructor(message: string, options?: ErrorOptions) {
    super('job-failed', message, options);
  }
}
