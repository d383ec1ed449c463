import { generateKeyPairSync, type KeyObject, randomUUID, verify } from 'node:crypto';
import type { Reply } from '../loopback-server.ts';
import { GoogleError } from './model.ts';

/** Error response of a token endpoint (RFC 6749, 5.2). */
export interface TokenError {
  readonly error: string;
  readonly error_description: string;
}

/** Audience of service account assertions. */
const AUDIENCE = 'https://oauth2.googleapis.com/token';

/** Max difference in seconds between the time in an assertion and the double’s. */
const SKEW = 300;

const ISSUED = 'token';

const ACCOUNT = 'builder@ci-project.iam.gserviceaccount.com';

/** Tokens and keys that the double accepts. */
export class TokenDouble {
  /** Returns the error for a request. Default: none. */
  tokenError: () => TokenError | undefined = () => undefined;
  /** Lifetime of an issued token in seconds. */
  lifetime = 3600;
  /** Current time of the double, in milliseconds since the epoch. */
  now: () => number = Date.now;
  readonly #keys = new Map<string, KeyObject>();

  /** Creates a service account key, without the double's `token_uri`. */
  createKey(): { readonly private_key_id: string } & Readonly<Record<string, string>> {
    const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const id = randomUUID();
    this.#keys.set(id, publicKey);
    return {
      type: 'service_account',
      project_id: 'ci-project',
      private_key_id: id,
      private_key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
      client_email: ACCOUNT,
    };
  }

  deleteKey({ private_key_id: id }: { readonly private_key_id: string }): void {
    this.#keys.delete(id);
  }

  /** Responds to a token request with an assertion, a token exchange, or one on behalf of a service account. */
  respond(path: string, authorization: string | undefined, body: Buffer): Reply | undefined {
    if (path === '/token') {
      const assertion = new URLSearchParams(body.toString()).get('assertion');
      const error = this.tokenError() ?? (assertion === null ? undefined : this.#reasonAgainst(assertion));
      if (error !== undefined) return { status: 400, body: error };
      const issued_token_type = 'urn:ietf:params:oauth:token-type:access_token';
      const json = {
        access_token: ISSUED,
        token_type: 'Bearer',
        expires_in: this.lifetime,
        issued_token_type,
      };
      return { status: 200, body: json };
    }
    if (!/^\/v1\/projects\/-\/serviceAccounts\/[^/:]+:generateAccessToken$/.test(path)) return undefined;
    if (!this.accepts(authorization)) throw new GoogleError(401, 'authError', 'Invalid Credentials');
    const expireTime = new Date(this.now() + this.lifetime * 1000).toISOString();
    return { status: 200, body: { accessToken: ISSUED, expireTime } };
  }

  accepts(authorization: string | undefined): boolean {
    return authorization === `Bearer ${ISSUED}`;
  }

  /** Checks the assertion of a service account (RFC 7523). Undefined if it is valid. */
  #reasonAgainst(assertion: string): TokenError | undefined {
    const [head = '', payload = '', signature = ''] = assertion.split('.');
    const { iss, aud, iat, exp } = read(payload);
    if (iss !== ACCOUNT || aud !== AUDIENCE) return refuse('Invalid grant: account not found');
    const now = this.now() / 1000;
    if (Number(iat) > now + SKEW || Number(exp) < now - SKEW || Number(exp) - Number(iat) > 3600) {
      return refuse(
        'Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe. Check your iat and exp values in the JWT claim.',
      );
    }
    const signed = [Buffer.from(`${head}.${payload}`), Buffer.from(signature, 'base64url')] as const;
    const isSigned = [...this.#keys.values()].some((key) => verify('sha256', signed[0], key, signed[1]));
    return isSigned ? undefined : refuse('Invalid JWT Signature.');
  }
}

function refuse(error_description: string): TokenError {
  return { error: 'invalid_grant', error_description };
}

function read(part: string): Readonly<Record<string, unknown>> {
  return JSON.parse(Buffer.from(part, 'base64url').toString()) as Record<string, unknown>;
}
