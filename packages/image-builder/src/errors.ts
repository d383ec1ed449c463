/** Error codes. If `true`, a retry may succeed. */
export const IMAGE_ERRORS = {
  'invalid-image-id': { retriable: false },
  'invalid-configuration': { retriable: false },
  'builder-unknown': { retriable: false },
  'image-exists': { retriable: false },
  'image-not-found': { retriable: false },
  'format-unknown': { retriable: false },
  'format-unavailable': { retriable: false },
  'conversion-failed': { retriable: true },
  'command-not-found': { retriable: false },
  'command-failed': { retriable: true },
  'build-timeout': { retriable: true },
  'build-aborted': { retriable: true },
  'validation-failed': { retriable: true },
  'image-missing': { retriable: false },
  'image-changed': { retriable: false },
  'image-not-self-contained': { retriable: false },
  'image-too-large': { retriable: false },
  'read-aborted': { retriable: true },
  'disk-full': { retriable: true },
  'directory-not-usable': { retriable: false },
  'directory-locked': { retriable: false },
  'cleanup-failed': { retriable: true },
  'provider-refused': { retriable: false },
  'invalid-filter': { retriable: false },
  'build-unknown': { retriable: false },
  'build-unusable': { retriable: false },
  'source-unavailable': { retriable: true },
  'source-refused': { retriable: false },
  'launch-failed': { retriable: true },
  'instance-failed': { retriable: true },
  'login-refused': { retriable: true },
  'host-key-changed': { retriable: false },
  'download-failed': { retriable: true },
  'artifact-expired': { retriable: false },
  'artifact-refused': { retriable: false },
  'artifact-too-large': { retriable: false },
  'artifact-damaged': { retriable: false },
  'attestation-refused': { retriable: false },
} as const;

/** Code of an {@link ImageError}. Compare codes, never messages. */
export type ImageErrorCode = keyof typeof IMAGE_ERRORS;

/** An expected error. Its message names the subject, the reason and the remedy. */
export class ImageError extends Error {
  override readonly name = 'ImageError';
  readonly code: ImageErrorCode;

  constructor(code: ImageErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }

  /** True if a retry may succeed without any other change. */
  get retriable(): boolean {
    return IMAGE_ERRORS[this.code].retriable;
  }
}

/** Returns the message of an error. The error of a host with several addresses has none of its own. */
export function errorMessage(error: unknown): string {
  const { message, code, name } = Object(error) as Partial<NodeJS.ErrnoException>;
  return message || code || name || String(error);
}
