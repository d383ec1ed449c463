import type { IssuedToken } from './issued-token.ts';
import { signToken } from './json-web-token.ts';
import { readSecret } from './secret-file.ts';

/** Milliseconds that a minted token lives: Zuul's documentation advises ten minutes at most. */
const LIFE = 300_000;

/** Milliseconds by which Zuul's clock may be behind ours: it refuses tokens of the future. */
const CLOCK_SKEW = 30_000;

/** What a token is minted with: an `[auth "…"]` section of zuul.conf with the driver HS256. */
export interface MintSettings {
  /** `issuer_id` there. */
  readonly issuer: string;
  /** `client_id` there. */
  readonly audience: string;
  /** Who we are for Zuul's access rules. */
  readonly subject: string;
  /** Holds what is `secret` there. */
  readonly secretFile: string;
}

/**
 * Mints a token with which its subject can only read. `zuul-admin create-auth-token` would add the claim `zuul.admin`.
 *
 * @param now milliseconds since the epoch
 * @throws ZuulError `credentials-unusable`
 */
export async function mintToken(
  { issuer, audience, subject, secretFile }: MintSettings,
  now: number,
): Promise<IssuedToken> {
  const exp = seconds(now + LIFE);
  const claims = { iss: issuer, aud: audience, sub: subject, iat: seconds(now - CLOCK_SKEW), exp };
  return { value: signToken(claims, await readSecret(secretFile)), expiresAt: exp * 1000 };
}

function seconds(milliseconds: number): number {
  return Math.floor(milliseconds / 1000);
}
