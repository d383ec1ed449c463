import { generateKeyPairSync, type KeyObject, randomUUID, verify } from 'node:crypto';
import type { Reply } from '../loopback-server.ts';
import { GoogleError } from './model.ts';

/** An error of a token endpoint (RFC 6749, 5.2). */
export interface TokenError {
  readonly error: string;
  readonly error_description: string;
}

/** Audience of the assertions of a service account. */
const AUDIENCE = 'https://oauth2.googleapis.com/token';

/** Seconds by which the time in an assertion may differ from the double’s. */
const SKEW = 300;

const ISSUED = 'token';

const ACCOUNT = 'builder@ci-project.iam.gserviceaccount.com';

/** The tokens and keys that the double accepts. */
export class TokenDouble {
  /** Why a request gets no token. Default: it gets one. */
  refusal: () => TokenError | undefined = () => undefined;
  /** Seconds for which an issued token is valid. */
  lifetime = 3600;
  /** Milliseconds since the epoch, as the double sees it. */
  now: () => number = Date.now;
  readonly #keys = new Map<string, KeyObject>();

  /** Makes a key of a service account, without the `token_uri` of the double. */
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

  /** Responds to a request for a token: with an assertion, an exchange, or one in the name of a service account. */
  respond(path: string, authorization: string | undefined, body: Buffer): Reply | undefined {
    if (path === '/token') {
      const assertion = new URLSearchParams(body.toString()).get('assertion');
      const refusal = this.refusal() ?? (assertion === null ? undefined : this.#reasonAgainst(assertion));
      if (refusal !== undefined) return { status: 400, body: refusal };
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

  /** Why no token is issued for the assertion of a service account (RFC 7523). */
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
