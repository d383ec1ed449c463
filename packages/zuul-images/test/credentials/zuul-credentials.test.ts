import assert from 'node:assert/strict';
import { rm } from 'node:fs/promises';
import { describe, test } from 'node:test';
import type { Clock } from '@nodepool-builder/image-builder/plugin';
import { signToken } from '../../src/credentials/json-web-token.ts';
import { createCredentials, type ZuulCredentials } from '../../src/credentials/zuul-credentials.ts';
import { ApiFixture, ON } from '../api/api-fixture.ts';
import { ManualClock } from '../api/manual-clock.ts';
import { zuulFailure } from '../api/zuul-failure.ts';
import { AUTHENTICATOR, TokenFixture, tokenOf } from './token-fixture.ts';

/** Returns the tokens of the builds requests. */
function tokens({ zuul }: TokenFixture): readonly (string | undefined)[] {
  return zuul.listings.map(({ headers }) => headers.authorization?.replace('Bearer ', ''));
}

describe('a token from a file', () => {
  test('a token file may have the prefix that zuul-admin writes', async (t) => {
    const fixture = await TokenFixture.create(t);
    const token = fixture.mint();
    await fixture.write('token', `Bearer ${token}\n`);
    const credentials = tokenFile(fixture.path('token'));
    await new ApiFixture(fixture.zuul, { credentials }).builds();
    assert.deepEqual(tokens(fixture), [token]);
  });

  test('a token file is read for each request, and its token is sent once', async (t) => {
    const fixture = await TokenFixture.create(t);
    const old = fixture.mint({ now: Date.now() - 3_600_000 });
    await fixture.write('token', old);
    const credentials = tokenFile(fixture.path('token'));
    const { api, builds } = wired(fixture, credentials);
    await assert.rejects(builds(), zuulFailure('auth-failed', api, '401 Unauthorized: TokenExpiredError'));
    assert.deepEqual(tokens(fixture), [old]);
    const fresh = fixture.mint();
    await fixture.write('token', fresh);
    await builds();
    assert.deepEqual(tokens(fixture), [old, fresh]);
  });

  test('a token file that is missing or contains no token causes an error with its path', async (t) => {
    const fixture = await TokenFixture.create(t);
    const path = fixture.path('token');
    const credentials = tokenFile(path);
    await assert.rejects(tokenOf(credentials, ON), zuulFailure('credentials-unusable', path, 'ENOENT'));
    await fixture.write('token', 'two secret\nlines');
    await assert.rejects(
      tokenOf(credentials, ON),
      zuulFailure('credentials-unusable', path, 'other text than a bearer token'),
    );
    await fixture.write('token', '\n');
    await assert.rejects(tokenOf(credentials, ON), zuulFailure('credentials-unusable', path));
  });
});

test('a token from zuul-admin create-auth-token causes one warning, and the error for its 401 says what to do', async (t) => {
  const fixture = await TokenFixture.create(t);
  const { issuer: iss, clientId: aud, secret } = AUTHENTICATOR;
  const now = Math.floor(Date.now() / 1000);
  const claims = { iss, aud, sub: 'nodepool', iat: now - 30, exp: now + 600, zuul: { admin: ['example'] } };
  await fixture.write('token', signToken(claims, secret));
  const credentials = tokenFile(fixture.path('token'));
  const api = new ApiFixture(fixture.zuul, { credentials });
  for (let look = 0; look < 2; look += 1) {
    await assert.rejects(
      api.builds(),
      zuulFailure('auth-failed', '401 Unauthorized: UnauthorizedZuulAdminClaimError', 'shared-'),
    );
  }
  const warnings = api.logger.lines.filter((line) => line.startsWith('warn '));
  assert.equal(warnings.length, 1);
  assert.match(warnings[0] ?? '', /claim zuul\.admin/);
});

const now = Math.floor(Date.now() / 1000);

for (const [what, claims, key, words] of [
  [
    'of another audience',
    { aud: 'other' },
    undefined,
    ['IncorrectAudienceError', 'set audience of shared-', 'client_id'],
  ],
  [
    'of another issuer',
    { iss: 'other' },
    undefined,
    ['IssuerUnknownError', 'set issuer of shared-', 'issuer_id'],
  ],
  ['that has expired', { exp: now - 60 }, undefined, ['TokenExpiredError', 'renew the token', 'clocks']],
  ['that is signed with another key', {}, 'another', ['InvalidSignature', 'the file of shared-secret']],
] as const) {
  test(`the error for a token ${what} names the setting to correct`, async (t) => {
    const fixture = await TokenFixture.create(t);
    const { issuer: iss, clientId: aud, secret } = AUTHENTICATOR;
    const token = { iss, aud, sub: 'nodepool', iat: now - 90, exp: now + 600, ...claims };
    await fixture.write('token', signToken(token, key ?? secret));
    const credentials = tokenFile(fixture.path('token'));
    await assert.rejects(
      new ApiFixture(fixture.zuul, { credentials }).builds(),
      zuulFailure('auth-failed', '401 Unauthorized', ...words),
    );
  });
}

describe('a minted token', () => {
  test('a minted token is accepted by Zuul, and reused until shortly before it expires', async (t) => {
    const fixture = await TokenFixture.create(t);
    const clock = new ManualClock();
    const credentials = minted(fixture, clock);
    const { builds } = wired(fixture, credentials);
    await builds();
    const first = await tokenOf(credentials, ON);
    assert.deepEqual(tokens(fixture), [first]);
    clock.pass(269_000);
    assert.equal(await tokenOf(credentials, ON), first);
    clock.pass(2_000);
    assert.notEqual(await tokenOf(credentials, ON), first);
  });

  test('a token minted with a wrong secret is rejected, and the error does not contain the secret', async (t) => {
    const fixture = await TokenFixture.create(t);
    await fixture.write('key', 'wrong secret');
    const clock = new ManualClock();
    const { builds } = wired(fixture, minted(fixture, clock));
    await assert.rejects(builds(), zuulFailure('auth-failed', 'AuthTokenInvalidSignatureException'));
    // In the same second, the next token would be equal.
    assert.equal(tokens(fixture).length, 1);
  });

  test('a minted token is replaced after a 401, with the current secret', async (t) => {
    const fixture = await TokenFixture.create(t);
    await fixture.write('key', 'old secret');
    const credentials = minted(fixture);
    const old = await tokenOf(credentials, ON);
    await fixture.write('key', AUTHENTICATOR.secret);
    await wired(fixture, credentials).builds();
    assert.equal(tokens(fixture)[0], old);
    assert.equal(tokens(fixture).length, 2);
  });

  test('a minted token for a subject without an access rule is forbidden', async (t) => {
    const fixture = await TokenFixture.create(t);
    const credentials = minted(fixture, undefined, 'somebody');
    await assert.rejects(
      wired(fixture, credentials).builds(),
      zuulFailure('forbidden', '403', 'access rule'),
    );
    assert.equal(tokens(fixture).length, 1);
  });

  test('a minted token needs the secret file', async (t) => {
    const fixture = await TokenFixture.create(t);
    const credentials = minted(fixture);
    await rm(fixture.path('key'));
    await assert.rejects(tokenOf(credentials, ON), zuulFailure('credentials-unusable', 'ENOENT'));
    await fixture.write('key', '\n');
    await assert.rejects(tokenOf(credentials, ON), zuulFailure('credentials-unusable', 'is empty'));
  });
});

test('the error for a protected tenant without credentials says what to configure', async (t) => {
  const fixture = await TokenFixture.create(t);
  const { builds } = wired(fixture, createCredentials(undefined));
  await assert.rejects(builds(), zuulFailure('auth-failed', 'MissingAuthError', 'configure a token'));
  assert.deepEqual(tokens(fixture), [undefined]);
});

function wired(
  { zuul }: TokenFixture,
  credentials: ZuulCredentials | undefined,
): { api: string; builds: () => Promise<unknown> } {
  const fixture = new ApiFixture(zuul, { credentials });
  return { api: fixture.api.name, builds: () => fixture.builds() };
}

function tokenFile(path: string): ZuulCredentials {
  const credentials = createCredentials({ 'token-file': path });
  assert.ok(credentials !== undefined);
  return credentials;
}

function minted(fixture: TokenFixture, clock?: Clock, subject: string = 'nodepool'): ZuulCredentials {
  const { issuer, clientId: audience } = AUTHENTICATOR;
  const settings = { issuer, audience, subject, 'secret-file': fixture.path('key') };
  const credentials = createCredentials({ 'shared-secret': settings }, clock && { clock });
  assert.ok(credentials !== undefined);
  return credentials;
}
