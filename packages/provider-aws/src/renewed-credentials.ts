import type {
  AwsCredentialIdentity,
  AwsCredentialIdentityProvider,
  InitializeHandler,
  InitializeMiddleware,
  MetadataBearer,
} from '@smithy/types';

/** Milliseconds for which credentials without an expiry time are used. */
const LIFETIME = 15 * 60_000;

/** AWS errors about credentials that may have been renewed at their source. */
const EXPIRED =
  /^(?:Expired|RequestExpired|InvalidClientTokenId|InvalidAccessKeyId|UnrecognizedClient|AuthFailure)/;

/**
 * Credentials that are read again from time to time. The SDK would use credentials from a file for the lifetime of the
 * process, but login programs write new ones to it.
 *
 * @param read reads the credentials without a cache
 */
export function renewedCredentials(
  read: () => Promise<AwsCredentialIdentity>,
): () => Promise<AwsCredentialIdentity> {
  return async () => {
    const credentials = await read();
    return { ...credentials, expiration: credentials.expiration ?? new Date(Date.now() + LIFETIME) };
  };
}

/** Repeats a request once if AWS rejected its credentials and new ones are available. */
export function retryWithRenewed<Input extends object, Output extends MetadataBearer>(
  credentials: AwsCredentialIdentityProvider,
): InitializeMiddleware<Input, Output> {
  return (next: InitializeHandler<Input, Output>): InitializeHandler<Input, Output> =>
    async (args) => {
      const used = await credentials();
      try {
        return await next(args);
      } catch (error) {
        if (!(error instanceof Error) || !EXPIRED.test(error.name)) throw error;
        const known = await credentials();
        const renewed = isSame(known, used) ? await credentials({ forceRefresh: true }) : known;
        if (isSame(renewed, used)) throw error;
        return await next(args);
      }
    };
}

function isSame(one: AwsCredentialIdentity, other: AwsCredentialIdentity): boolean {
  return one.accessKeyId === other.accessKeyId && one.sessionToken === other.sessionToken;
}
