import type {
  AwsCredentialIdentity,
  AwsCredentialIdentityProvider,
  InitializeHandler,
  InitializeMiddleware,
  MetadataBearer,
} from '@smithy/types';

/** Milliseconds for which credentials without an end of their own are used. */
const LIFETIME = 15 * 60_000;

/** Errors of AWS about credentials that may have been renewed where they come from. */
const EXPIRED =
  /^(?:Expired|RequestExpired|InvalidClientTokenId|InvalidAccessKeyId|UnrecognizedClient|AuthFailure)/;

/**
 * Credentials that are read again from time to time. The SDK would use those of a file as long as the process runs, but
 * programs that log in write new ones there.
 *
 * @param read without a cache
 */
export function renewedCredentials(
  read: () => Promise<AwsCredentialIdentity>,
): () => Promise<AwsCredentialIdentity> {
  return async () => {
    const credentials = await read();
    return { ...credentials, expiration: credentials.expiration ?? new Date(Date.now() + LIFETIME) };
  };
}

/** Sends a request a second time if AWS refused its credentials, and there are other ones by now. */
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
