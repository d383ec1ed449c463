/** A failure of a request that may go away by itself. */
export class TransientFailure extends Error {
  override readonly name = 'TransientFailure';
  /** Milliseconds that the server asks to wait. */
  readonly retryAfter: number | undefined;

  constructor(
    message: string,
    { retryAfter, ...options }: ErrorOptions & { readonly retryAfter?: number } = {},
  ) {
    super(message, options);
    this.retryAfter = retryAfter;
  }
}

/** The object is another one than that of which a part is there already: all begins anew. */
export class ObjectReplaced extends TransientFailure {
  constructor(how: string) {
    super(`the object changed while it was fetched: ${how}`);
  }
}
