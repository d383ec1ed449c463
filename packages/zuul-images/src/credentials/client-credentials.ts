import { type Clock, JsonReader } from '@nodepool-builder/image-builder/module-kit';
import { answerError } from '../api/answer-error.ts';
import { parseAnswer } from '../api/parse-answer.ts';
import { ZuulError } from '../api/zuul-error.ts';
import type { ZuulHttp } from '../api/zuul-http.ts';
import { bearerToken } from './bearer-token.ts';
import type { IssuedToken } from './issued-token.ts';
import { readSecret } from './secret-file.ts';

/** A client of an OpenID provider (`authority` of a realm in Zuul's `info`). */
export interface ClientSettings {
  /** The provider's issuer URL. */
  readonly issuer: string;
  readonly clientId: string;
  /** Holds the client's secret. */
  readonly secretFile: string;
  /** What the token is to be good for, where the provider asks for it. */
  readonly scope?: string;
}

/** What a {@link requestToken} needs. */
export interface TokenRequestOptions {
  readonly http: ZuulHttp;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

interface Provider {
  readonly tokenEndpoint: URL;
  /** Whether the secret goes into the body: not all take it in a header. */
  readonly secretInBody: boolean;
}

/**
 * Has an OpenID provider issue a token for a client (RFC 6749, 4.4); where to ask, the provider tells by discovery.
 *
 * @throws ZuulError `invalid-settings`, `credentials-unusable`, and those of a failed request
 */
export async function requestToken(
  settings: ClientSettings,
  options: TokenRequestOptions,
): Promise<IssuedToken> {
  const { http, clock, signal } = options;
  const { tokenEndpoint, secretInBody } = await discover(settings.issuer, options);
  const secret = await readSecret(settings.secretFile);
  const request = `OpenID provider ${settings.issuer}: POST ${tokenEndpoint.pathname}`;
  const asked = clock.now();
  const answer = await http.send(request, {
    url: tokenEndpoint,
    headers: secretInBody ? {} : { authorization: basic(settings.clientId, secret) },
    form: {
      grant_type: 'client_credentials',
      ...(settings.scope !== undefined && { scope: settings.scope }),
      ...(secretInBody && { client_id: settings.clientId, client_secret: secret }),
    },
    signal,
  });
  if (answer.status === 400 || answer.status === 401) {
    const { message, status } = answerError(request, answer, clock.now());
    throw new ZuulError(
      'credentials-unusable',
      `${withoutRemedy(message)}; check the client, its secret and the scope`,
      {
        status,
      },
    );
  }
  if (answer.status !== 200) throw answerError(request, answer, clock.now());
  return parseAnswer(request, answer, (value) => readToken(value, request, asked));
}

async function discover(issuer: string, { http, clock, signal }: TokenRequestOptions): Promise<Provider> {
  const base = URL.parse(`${issuer.replace(/\/$/, '')}/`);
  if (base === null || !['http:', 'https:'].includes(base.protocol)) {
    throw new ZuulError('invalid-settings', 'the issuer of Zuul tokens is no http or https URL; correct it');
  }
  const url = new URL('.well-known/openid-configuration', base);
  const request = `OpenID provider ${issuer}: GET ${url.pathname}`;
  const answer = await http.send(request, { url, signal });
  if (answer.status !== 200) throw answerError(request, answer, clock.now());
  return parseAnswer(request, answer, (value) => readProvider(value, base));
}

const PROVIDER = new JsonReader({
  type: 'object',
  required: ['issuer', 'token_endpoint'],
  properties: {
    issuer: { type: 'string' },
    token_endpoint: { type: 'string' },
    token_endpoint_auth_methods_supported: { type: ['array', 'null'] },
  },
});

function readProvider(value: unknown, issuer: URL): Provider {
  const provider = PROVIDER.check(value);
  // OpenID Connect Discovery, 4.3: another's document must not direct the secret elsewhere
  const named = provider.issuer.replace(/\/?$/, '/');
  if (URL.parse(named)?.href !== issuer.href) throw new Error('it is about another issuer');
  const tokenEndpoint = URL.parse(provider.token_endpoint);
  if (tokenEndpoint === null || ![issuer.protocol, 'https:'].includes(tokenEndpoint.protocol)) {
    throw new Error(`token_endpoint is no ${issuer.protocol} URL`);
  }
  const methods = provider.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
  return { tokenEndpoint, secretInBody: !methods.includes('client_secret_basic') };
}

const TOKEN = new JsonReader({
  type: 'object',
  required: ['access_token'],
  properties: { access_token: { type: 'string' }, expires_in: {} },
});

function readToken(value: unknown, request: string, asked: number): IssuedToken {
  const { access_token: token, expires_in: life } = TOKEN.check(value);
  return {
    value: bearerToken(token, request),
    ...(typeof life === 'number' && { expiresAt: asked + life * 1000 }),
  };
}

/** RFC 6749, 2.3.1: both are encoded as in a form before they are joined. */
function basic(user: string, password: string): string {
  return `Basic ${Buffer.from(`${formEncoded(user)}:${formEncoded(password)}`).toString('base64')}`;
}

function formEncoded(value: string): string {
  return new URLSearchParams([['', value]]).toString().slice(1);
}

function withoutRemedy(message: string): string {
  return message.split(';', 1)[0] as string;
}
