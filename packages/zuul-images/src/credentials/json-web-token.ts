import { createHmac } from 'node:crypto';
import type { IssuedToken } from '@nodepool-builder/image-builder/internal';
import { CloudError } from '@nodepool-builder/image-builder/plugin';
import type { AuthSettings } from '../zuul-settings.ts';

/** Lifetime of a minted token in milliseconds. Zuul's documentation recommends at most ten minutes. */
const LIFE = 300_000;

/** Milliseconds by which Zuul's clock may be slow, because it rejects tokens that were issued in the future. */
const CLOCK_SKEW = 30_000;

/** Syntax of a bearer token (RFC 6750, 2.1). */
const BEARER_TOKEN = /^[\w.~+/-]+=*$/;

/**
 * Mints a token that permits its subject only to read. `zuul-admin create-auth-token` would add the claim `zuul.admin`.
 *
 * @param now milliseconds since 1970
 */
export function mintToken(
  { issuer, audience, subject }: NonNullable<AuthSettings['shared-secret']>,
  secret: string,
  now: number,
): IssuedToken {
  const [iat, exp] = [Math.floor((now - CLOCK_SKEW) / 1000), Math.floor((now + LIFE) / 1000)];
  const claims = { iss: issuer, aud: audience, sub: subject, iat, exp };
  return { value: signToken(claims, secret), expiresAt: exp * 1000 };
}

/** Signs a JSON Web Token (RFC 7519) with HMAC-SHA-256 (RFC 7518 `HS256`). */
export function signToken(claims: Readonly<Record<string, unknown>>, secret: string): string {
  const signed = [{ alg: 'HS256', typ: 'JWT' }, claims]
    .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.');
  return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`;
}

/** Returns the expiry of a token in milliseconds since 1970, if it contains one. The signature is not checked. */
export function expiryOf(token: string): number | undefined {
  const { exp } = claimsOf(token);
  return typeof exp === 'number' ? exp * 1000 : undefined;
}

/**
 * Returns whether a token claims the rights of an administrator, like every token of `zuul-admin create-auth-token`.
 */
export function hasAdminClaim(token: string): boolean {
  const { zuul } = claimsOf(token);
  return typeof zuul === 'object' && zuul !== null && 'admin' in zuul;
}

/** Returns the claims of a token; none if it is not a JSON Web Token. */
function claimsOf(token: string): Readonly<Record<string, unknown>> {
  const [, payload = '', ...rest] = token.split('.');
  if (rest.length !== 1) return {};
  try {
    const claims: unknown = JSON.parse(Buffer.from(payload, 'base64url').toString());
    return typeof claims === 'object' && claims !== null ? { ...claims } : {};
  } catch {
    return {};
  }
}

/**
 * Returns the token in a text. `zuul-admin create-auth-token` writes `Bearer` before it.
 *
 * @param source subject of the message, such as a file
 * @throws CloudError `credentials-unusable`; the message does not quote the text
 */
export function bearerToken(text: string, source: string): string {
  const token = text.trim().replace(/^bearer\s+/i, '');
  if (BEARER_TOKEN.test(token)) return token;
  const reason = token === '' ? 'contains no token' : 'contains other text than a bearer token';
  throw new CloudError('credentials-unusable', `${source} ${reason}; correct it`);
}
