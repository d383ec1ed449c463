import { noResponse } from '@nodepool-builder/image-builder/internal';
import { cloudError, type HttpClient, JsonReader } from '@nodepool-builder/image-builder/plugin';
import type { Credentials } from './credentials.ts';
import { registryError } from './registry-error.ts';

/** Challenge from the header `WWW-Authenticate` of a registry. */
export interface Challenge {
  /** Scheme in lower case: `basic`, `bearer`. */
  readonly scheme: string;
  readonly parameters: Readonly<Record<string, string>>;
}

/** A scheme, or a parameter with its value, quoted or not (RFC 9110, 11.6.1). */
const WORD = /([\w!#$%&'*+.^`|~-]+)(?:\s*(=)\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]*)))?/g;

/** Parses a header. Returns the first known challenge. */
export function parseChallenge(header = ''): Challenge | undefined {
  const challenges: { readonly scheme: string; readonly parameters: Record<string, string> }[] = [];
  for (const [, word = '', hasValue, quoted, plain = ''] of header.matchAll(WORD)) {
    const name = word.toLowerCase();
    const value = quoted?.replaceAll(/\\(.)/g, '$1') ?? plain;
    if (hasValue === undefined) challenges.push({ scheme: name, parameters: {} });
    else Object.assign(challenges.at(-1)?.parameters ?? {}, { [name]: value });
  }
  return challenges.find(({ scheme }) => scheme === 'basic' || scheme === 'bearer');
}

const TOKEN = new JsonReader({
  type: 'object',
  properties: { token: { type: ['string', 'null'] }, access_token: { type: ['string', 'null'] } },
});

interface AuthRequest {
  readonly client: HttpClient;
  readonly challenge: Challenge | undefined;
  /** URL of the registry. */
  readonly registry: URL;
  readonly credentials: Credentials | undefined;
  /** Subject of errors: `provider oci`. */
  readonly subject: string;
  readonly signal: AbortSignal;
}

/**
 * Creates the `Authorization` header for a challenge, with a token from the registry's token service if it has one.
 *
 * @throws CloudError
 */
export async function authorize(request: AuthRequest): Promise<string> {
  const { challenge, credentials, subject } = request;
  if (challenge?.scheme === 'bearer') return `Bearer ${await fetchToken(request, challenge.parameters)}`;
  const basic = basicHeader(credentials);
  if (challenge?.scheme === 'basic' && basic !== undefined) return basic;
  const reason =
    challenge === undefined
      ? 'the registry rejects the request, and requires an unknown kind of credentials'
      : 'the registry requires a user name and a password, and no auth-file contains them';
  throw cloudError('auth-failed', subject, reason);
}

function basicHeader({ username, password }: Credentials = {}): string | undefined {
  if (username === undefined) return undefined;
  return `Basic ${Buffer.from(`${username}:${password ?? ''}`).toString('base64')}`;
}

async function fetchToken(
  { client, registry, credentials, subject, signal }: AuthRequest,
  { realm = '', service, scope }: Readonly<Record<string, string>>,
): Promise<string> {
  const url = URL.parse(realm);
  if (url === null || (registry.protocol === 'https:' && url.protocol !== 'https:')) {
    throw cloudError(
      'auth-failed',
      subject,
      'the registry refers to a token service without TLS, or to none',
    );
  }
  const query = { ...(service && { service }), ...(scope && { scope }) };
  const basic = basicHeader(credentials);
  const identityToken = credentials?.identityToken;
  if (identityToken === undefined)
    for (const [key, value] of Object.entries(query)) url.searchParams.append(key, value);
  const what = `${subject}: token of ${url.host}`;
  const sent = client.send({
    url,
    signal,
    ...(identityToken === undefined
      ? { headers: basic === undefined ? {} : { authorization: basic } }
      : {
          form: {
            ...query,
            grant_type: 'refresh_token',
            client_id: 'nodepool-builder',
            refresh_token: identityToken,
          },
        }),
  });
  const response = await sent.catch((error: unknown) => {
    signal.throwIfAborted();
    throw noResponse(what, error);
  });
  if (response.status !== 200) {
    const error = registryError(what, response);
    if (error.code !== 'not-found') throw error;
    // A 404 from a wrong token service must not look like a missing image.
    throw cloudError('auth-failed', what, error.message, { remedy: 'check the registry that refers to it' });
  }
  const { token, access_token: accessToken } = TOKEN.parse(response.body, (reason) =>
    cloudError('service-unavailable', what, reason),
  );
  const found = token || accessToken;
  if (found) return found;
  throw cloudError('auth-failed', what, 'the response contains no token');
}
