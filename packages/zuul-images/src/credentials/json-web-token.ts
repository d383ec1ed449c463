import { createHmac } from 'node:crypto';

/** The claims of a JSON Web Token (RFC 7519) that are used here; times in seconds since the epoch. */
export interface TokenClaims {
  readonly iss: string;
  readonly aud: string;
  readonly sub: string;
  readonly iat: number;
  readonly exp: number;
}

/** Signs a token with HMAC-SHA-256 (RFC 7515, RFC 7518 `HS256`). */
export function signToken(claims: TokenClaims, secret: string): string {
  const signed = [{ alg: 'HS256', typ: 'JWT' }, claims].map(encode).join('.');
  return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`;
}

/**
 * When a token expires, in milliseconds since the epoch; undefined if it does not say so. The signature is not
 * checked: that is for who takes the token.
 */
export function expiryOf(token: string): number | undefined {
  const { exp } = claimsOf(token);
  return typeof exp === 'number' ? exp * 1000 : undefined;
}

/** Whether a token asks for the rights of an administrator, as every token of `zuul-admin create-auth-token` does. */
export function hasAdminClaim(token: string): boolean {
  const { zuul } = claimsOf(token);
  return typeof zuul === 'object' && zuul !== null && 'admin' in zuul;
}

/** Claims of a token; none if it is not a JSON Web Token. */
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

function encode(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}
