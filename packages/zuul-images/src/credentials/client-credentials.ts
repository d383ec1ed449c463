import { type IssuedToken, objectOf, TEXT } from '@nodepool-builder/image-builder/internal';
import { type Clock, CloudError, JsonReader } from '@nodepool-builder/image-builder/plugin';
import type { ZuulHttp } from '../api/zuul-http.ts';
import type { AuthSettings } from '../zuul-settings.ts';
import { bearerToken } from './json-web-token.ts';

/** Metadata of an OpenID provider. */
interface Provider {
  readonly tokenEndpoint: URL;
  /** True to send the secret in the form instead of a header. */
  readonly secretInBody: boolean;
}

const PROVIDER = new JsonReader(
  objectOf(
    { issuer: TEXT, token_endpoint: TEXT },
    { token_endpoint_auth_methods_supported: { type: ['array', 'null'] } },
  ),
);

const TOKEN = new JsonReader(objectOf({ access_token: TEXT }, { expires_in: {} }));

/**
 * Requests a token from an OpenID provider with the client credentials grant (RFC 6749, section 4.4).
 *
 * @throws CloudError
 */
export async function requestToken(
  { issuer, 'client-id': id, scope }: NonNullable<AuthSettings['client-credentials']>,
  secret: string,
  http: ZuulHttp,
  clock: Clock,
  signal: AbortSignal,
): Promise<IssuedToken> {
  const { tokenEndpoint, secretInBody } = await discover(issuer, http, signal);
  const name = `OpenID provider ${issuer}: POST ${tokenEndpoint.pathname}`;
  const requestedAt = clock.now();
  const request = {
    url: tokenEndpoint,
    headers: secretInBody ? {} : { authorization: basic(id, secret) },
    form: {
      grant_type: 'client_credentials',
      ...(scope !== undefined && { scope }),
      ...(secretInBody && { client_id: id, client_secret: secret }),
    },
    signal,
  };
  try {
    return await http.json(name, request, (value) => {
      const { access_token: token, expires_in: life } = TOKEN.check(value);
      const expiresAt = typeof life === 'number' ? requestedAt + life * 1000 : undefined;
      return { value: bearerToken(token, `the response of ${name}`), expiresAt };
    });
  } catch (error) {
    throw withRemedy(error, 'check the client, its secret and the scope');
  }
}

/** Replaces the remedies of {@link ZuulHttp}, which are about Zuul's API. */
function withRemedy(error: unknown, remedy: string): unknown {
  if (!(error instanceof CloudError) || error.retriable) return error;
  const { status = 0 } = error;
  const [reason] = error.message.split(';', 1);
  return status < 400 ? error : new CloudError('credentials-unusable', `${reason}; ${remedy}`, { status });
}

async function discover(issuer: string, http: ZuulHttp, signal: AbortSignal): Promise<Provider> {
  const base = new URL(`${issuer.replace(/\/$/, '')}/`);
  const url = new URL('.well-known/openid-configuration', base);
  const name = `OpenID provider ${issuer}: GET ${url.pathname}`;
  return await http
    .json(name, { url, signal }, (value) => readProvider(value, base))
    .catch((error: unknown) => {
      throw withRemedy(error, 'correct the issuer of Zuul tokens');
    });
}

function readProvider(value: unknown, issuer: URL): Provider {
  const provider = PROVIDER.check(value);
  // OpenID Connect Discovery, 4.3: the document of another issuer must not send the secret elsewhere.
  const named = provider.issuer.replace(/\/?$/, '/');
  if (URL.parse(named)?.href !== issuer.href) throw new Error('it is the metadata of another issuer');
  const tokenEndpoint = URL.parse(provider.token_endpoint);
  if (tokenEndpoint === null || ![issuer.protocol, 'https:'].includes(tokenEndpoint.protocol)) {
    throw new Error(`token_endpoint is not an ${issuer.protocol.slice(0, -1)} URL`);
  }
  const methods = provider.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
  return { tokenEndpoint, secretInBody: !methods.includes('client_secret_basic') };
}

/** RFC 6749, 2.3.1: both are encoded like a form before they are joined. */
function basic(user: string, password: string): string {
  const [id, secret] = [user, password].map((text) => new URLSearchParams({ '': text }).toString().slice(1));
  return `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`;
}
