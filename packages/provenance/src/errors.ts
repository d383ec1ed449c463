/** Code of a {@link ProvenanceError}. Compare codes, never messages. */
export type ProvenanceErrorCode =
  /** A private or public key that cannot be read, or whose type is not supported. */
  | 'key-unusable'
  /** The signing command failed, hung, or wrote something other than a signature. */
  | 'signing-failed'
  | 'attestation-unreadable'
  | 'bundle-too-large'
  /** A bundle that is damaged, or has another format. */
  | 'bundle-invalid'
  /** A statement that is not an in-toto statement, or whose predicate does not match its type. */
  | 'statement-invalid'
  | 'signature-invalid'
  /** A bundle that was signed with an untrusted key. */
  | 'key-untrusted'
  /** A bill of materials that is damaged, or differs from the attested one. */
  | 'bill-of-materials-invalid'
  | 'bill-of-materials-too-large';

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
    return this.code === 'signing-failed';
  }
}
