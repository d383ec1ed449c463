/** Codes of a {@link StoreError}. */
export type StoreErrorCode =
  | 'not-leader'
  | 'store-not-usable'
  | 'store-unreachable'
  | 'store-refused'
  | 'store-too-new'
  | 'store-not-empty'
  | 'invalid-export';

/** The state could not be read or written. */
export class StoreError extends Error {
  override readonly name = 'StoreError';
  readonly code: StoreErrorCode;

  constructor(code: StoreErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }

  /** True if the same call may succeed later. Commands print only the message of such an error. */
  get retriable(): boolean {
    return ['not-leader', 'store-not-usable', 'store-unreachable', 'store-refused'].includes(this.code);
  }

  /** Another manager may now be the leader. */
  static notLeader(location: string, options?: ErrorOptions): StoreError {
    const reason = `this manager is no longer the leader of ${location}; nothing was written`;
    return new StoreError('not-leader', `${reason}; wait to be elected again`, options);
  }
}
