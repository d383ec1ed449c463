/** Error codes of a store. `retriable` errors may go away: the same call may succeed later. */
export const STORE_ERRORS = {
  'not-leader': { retriable: true },
  'store-not-usable': { retriable: true },
  'store-too-new': { retriable: false },
  'store-not-empty': { retriable: false },
  'invalid-export': { retriable: false },
} as const;

/** A key of {@link STORE_ERRORS}. */
export type StoreErrorCode = keyof typeof STORE_ERRORS;

/** The state could not be read or written. */
export class StoreError extends Error {
  override readonly name = 'StoreError';
  readonly code: StoreErrorCode;

  constructor(code: StoreErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }

  /** Another manager may be the leader by now. */
  static notLeader(location: string, options?: ErrorOptions): StoreError {
    const reason = `this manager is no longer the leader of ${location}: nothing was written`;
    return new StoreError('not-leader', `${reason}; wait to be elected again`, options);
  }

  /** A state can be restored only into an empty store. */
  static notEmpty(location: string): StoreError {
    const message = `${location} is not empty: the import would replace its records; import into a new store`;
    return new StoreError('store-not-empty', message);
  }

  /** True if the same call may succeed later. */
  get retriable(): boolean {
    return STORE_ERRORS[this.code].retriable;
  }
}
