/** What can go wrong in a store; `retriable`: the same call may succeed later. */
export const STORE_ERRORS: {
  readonly 'not-leader': { readonly retriable: true };
  readonly 'store-not-usable': { readonly retriable: true };
  readonly 'store-too-new': { readonly retriable: false };
  readonly 'store-not-empty': { readonly retriable: false };
  readonly 'invalid-export': { readonly retriable: false };
} = {
  'not-leader': { retriable: true },
  'store-not-usable': { retriable: true },
  'store-too-new': { retriable: false },
  'store-not-empty': { retriable: false },
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

  /** This manager does not lead any more. */
  static notLeader(location: string, options?: ErrorOptions): StoreError {
    const message = `this manager does not lead ${location} any more: nothing was written; lead again`;
    return new StoreError('not-leader', message, options);
  }

  /** The place of a state that is to be restored is taken. */
  static notEmpty(location: string): StoreError {
    const message = `${location} is not empty: what it knows of would be forgotten; import into a new store`;
    return new StoreError('store-not-empty', message);
  }

  /** Whether the same call may succeed later. */
  get retriable(): boolean {
    return STORE_ERRORS[this.code].retriable;
  }
}
