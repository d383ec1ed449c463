/** Error codes, and whether a retry may succeed. */
export const PROVENANCE_ERRORS = {
  /** A private or public key that cannot be read, or that is of no supported type. */
  'key-unusable': { retriable: false },
  /** The signing command failed, hung, or wrote something else than a signature. */
  'signing-failed': { retriable: true },
  'attestation-unreadable': { retriable: false },
  'bundle-too-large': { retriable: false },
  /** A bundle that is damaged, or of another format. */
  'bundle-invalid': { retriable: false },
  /** A statement that is no in-toto statement, or whose predicate is not as its type says. */
  'statement-invalid': { retriable: false },
  'signature-invalid': { retriable: false },
  /** A bundle that was signed with a key that is not trusted. */
  'key-untrusted': { retriable: false },
  /** A bill of materials that is damaged, or not the one that the build attested. */
  'bill-of-materials-invalid': { retriable: false },
  'bill-of-materials-too-large': { retriable: false },
} as const;

/** Code of a {@link ProvenanceError}. Compare codes, never messages. */
export type ProvenanceErrorCode = keyof typeof PROVENANCE_ERRORS;

/** An expected error. Its message names the thing, the reason and the remedy, and never contains a key. */
export class ProvenanceError extends Error {
  override readonly name = 'ProvenanceError';
  readonly code: ProvenanceErrorCode;

  constructor(code: ProvenanceErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }

  /** Whether a retry may succeed without any other change. */
  get retriable(): boolean {
    return PROVENANCE_ERRORS[this.code].retriable;
  }
}
