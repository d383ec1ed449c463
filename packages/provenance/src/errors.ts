/** Error codes. If `retriable`, a retry may succeed. */
export const PROVENANCE_ERRORS = {
  /** A private or public key that cannot be read, or whose type is not supported. */
  'key-unusable': { retriable: false },
  /** The signing command failed, hung, or wrote something other than a signature. */
  'signing-failed': { retriable: true },
  'attestation-unreadable': { retriable: false },
  'bundle-too-large': { retriable: false },
  /** A bundle that is damaged, or has another format. */
  'bundle-invalid': { retriable: false },
  /** A statement that is not an in-toto statement, or whose predicate does not match its type. */
  'statement-invalid': { retriable: false },
  'signature-invalid': { retriable: false },
  /** A bundle that was signed with an untrusted key. */
  'key-untrusted': { retriable: false },
  /** A bill of materials that is damaged, or differs from the attested one. */
  'bill-of-materials-invalid': { retriable: false },
  'bill-of-materials-too-large': { retriable: false },
} as const;

/** Code of a {@link ProvenanceError}. Compare codes, never messages. */
export type ProvenanceErrorCode = keyof typeof PROVENANCE_ERRORS;

/** An expected error. Its message names the subject, the reason and the remedy, and never contains a key. */
export class ProvenanceError extends Error {
  override readonly name = 'ProvenanceError';
  readonly code: ProvenanceErrorCode;

  constructor(code: ProvenanceErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }

  /** True if a retry may succeed without any other change. */
  get retriable(): boolean {
    return PROVENANCE_ERRORS[this.code].retriable;
  }
}
