/** Where the tokens for a Zuul API come from. */
export interface ZuulCredentials {
  /**
   * The bearer token for a request that begins now; undefined to ask without one.
   *
   * @throws ZuulError `credentials-unusable`, and those of whatever issues the tokens
   * @throws the signal's reason
   */
  token(signal: AbortSignal): Promise<string | undefined>;
  /** The API answered 401 to this token: the next one must be another, if there can be one. */
  reject(token: string): void;
}

/** For an API that everyone may read, as most may. */
export const ANONYMOUS: ZuulCredentials = {
  token: () => Promise.resolve(undefined),
  reject: () => {},
};
