/** What can go wrong in a store; `retriable`: the same call may succeed later. */
export const STORE_ERRORS: {
  readonly 'not-leader': { readonly retriable: true };
  readonly 'store-not-usable': { readonly retriable: true };
  readonly 'store-too-new': { readonly retriable: false };
  readonly 'invalid-export': { readonly retriable: false };
} = {
  'not-leader': { retriable: true },
  'store-not-usable': { retriable: true },
  'store-too-new': { retriable: false },
  'invalid-export': { retriable: false },
};

/** A row of {@link STORE_ERRORS}. */
export type StoreErrorCode = keyof typeof STORE_ERRORS;

/** Why the state could not be read or written. */
export class StoreError extends Error {
  override readonly name = 'StoreError';
  readonly code: StoreErrorCode;

  constructor(code: StoreErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }

  /** Whether the same call may succeed later. */
  get retriable(): boolean {
    return STORE_ERRORS[this.code].retriable;
  }
}
