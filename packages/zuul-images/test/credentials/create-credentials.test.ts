import assert from 'node:assert/strict';
import { rm } from 'node:fs/promises';
import { describe, test } from 'node:test';
import { createCredentials } from '../../src/credentials/create-credentials.ts';
import { signToken } from '../../src/credentials/json-web-token.ts';
import { ApiFixture, ON } from '../api/api-fixture.ts';
import { ManualClock } from '../api/manual-clock.ts';
import { zuulFailure } from '../api/zuul-failure.ts';
import { AUTHENTICATOR, TokenFixture } from './token-fixture.ts';

/** The tokens that the Zuul was sent. */
function tokens({ zuul }: TokenFixture): readonly (string | undefined)[] {
  return zuul.listings.map(({ headers }) => headers.authorization?.replace('Bearer ', ''));
}

describe('a token from a file', () => {
  test('is sent, as zuul-admin wrote it', async (t) => {
    const fixture = await TokenFixture.create(t);
    const token = await fixture.mint();
    await fixture.write('token', `Bearer ${token}\n`);
    const credentials = createCredentials({ type: 'token-file', path: fixture.path('token') });
    await new ApiFixture(fixture.zuul, { credentials }).builds();
    assert.deepEqual(tokens(fixture), [token]);
  });

  test('is read again when Zuul does not take it any more: once', async (t) => {
    const fixture = await TokenFixture.create(t);
    const old = await fixture.mint({ now: Date.now() - 3_600_000 });
    await fixture.write('token', old);
    const credentials = createCredentials({ type: 'token-file', path: fixture.path('token') });
    const { api, builds } = wired(fixture, credentials);
    await assert.rejects(builds(), zuulFailure('auth-failed', api, '401 Unauthorized: TokenExpiredError'));
    assert.deepEqual(tokens(fixture), [old]);
    const fresh = await fixture.mint();
    await fixture.write('token', fresh);
    await builds();
    assert.deepEqual(tokens(fixture), [old, fresh]);
  });

  test('that is not there, or is none, is told with its path', async (t) => {
    const fixture = await TokenFixture.create(t);
    const path = fixture.path('token');
    const credentials = createCredentials({ type: 'token-file', path });
    await assert.rejects(credentials.token(ON), zuulFailure('credentials-unusable', path, 'ENOENT'));
    await fixture.write('token', 'two secret\nlines');
    await assert.rejects(credentials.token(ON), zuulFailure('credentials-unusable', path, 'no bearer token'));
    await fixture.write('token', '\n');
    await assert.rejects(credentials.token(ON), zuulFailure('credentials-unusable', path));
  });
});

test('a token of zuul-admin create-auth-token causes one warning, and its 401 says what to do', async (t) => {
  const fixture = await TokenFixture.create(t);
  const { issuer: iss, clientId: aud, secret } = AUTHENTICATOR;
  const now = Math.floor(Date.now() / 1000);
  const claims = { iss, aud, sub: 'nodepool', iat: now - 30, exp: now + 600, zuul: { admin: ['example'] } };
  await fixture.write('token', signToken(claims, secret));
  const credentials = createCredentials({ type: 'token-file', path: fixture.path('token') });
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

describe('a minted token', () => {
  test('is taken by Zuul, and used until it nears its end', async (t) => {
    const fixture = await TokenFixture.create(t);
    const clock = new ManualClock();
    const credentials = createCredentials(minted(fixture), { clock });
    const { builds } = wired(fixture, credentials);
    await builds();
    const first = await credentials.token(ON);
    assert.deepEqual(tokens(fixture), [first]);
    clock.pass(269_000);
    assert.equal(await credentials.token(ON), first);
    clock.pass(2_000);
    assert.notEqual(await credentials.token(ON), first);
  });

  test('of another secret is refused, and told without it', async (t) => {
    const fixture = await TokenFixture.create(t);
    await fixture.write('key', 'wrong secret');
    const clock = new ManualClock();
    const { builds } = wired(fixture, createCredentials(minted(fixture), { clock }));
    await assert.rejects(builds(), zuulFailure('auth-failed', 'AuthTokenInvalidSignatureException'));
    // in the same second the next one would be the same
    assert.equal(tokens(fixture).length, 1);
  });

  test('of a changed secret is minted anew on a 401', async (t) => {
    const fixture = await TokenFixture.create(t);
    await fixture.write('key', 'old secret');
    const credentials = createCredentials(minted(fixture));
    const old = await credentials.token(ON);
    await fixture.write('key', AUTHENTICATOR.secret);
    await wired(fixture, credentials).builds();
    assert.equal(tokens(fixture)[0], old);
    assert.equal(tokens(fixture).length, 2);
  });

  test('of a subject that may not read is told as forbidden', async (t) => {
    const fixture = await TokenFixture.create(t);
    const credentials = createCredentials({ ...minted(fixture), subject: 'somebody' });
    await assert.rejects(
      wired(fixture, credentials).builds(),
      zuulFailure('forbidden', '403', 'access rule'),
    );
    assert.equal(tokens(fixture).length, 1);
  });

  test('needs the secret', async (t) => {
    const fixture = await TokenFixture.create(t);
    const credentials = createCredentials(minted(fixture));
    await rm(fixture.path('key'));
    await assert.rejects(credentials.token(ON), zuulFailure('credentials-unusable', 'ENOENT'));
    await fixture.write('key', '\n');
    await assert.rejects(credentials.token(ON), zuulFailure('credentials-unusable', 'is empty'));
  });
});

test('without credentials, a protected tenant is told as such', async (t) => {
  const fixture = await TokenFixture.create(t);
  const { builds } = wired(fixture, createCredentials({ type: 'none' }));
  await assert.rejects(builds(), zuulFailure('auth-failed', 'MissingAuthError', 'configure a token'));
  assert.deepEqual(tokens(fixture), [undefined]);
});

type Credentials = ReturnType<typeof createCredentials>;

function wired(
  { zuul }: TokenFixture,
  credentials: Credentials,
): { api: string; builds: () => Promise<unknown> } {
  const fixture = new ApiFixture(zuul, { credentials });
  return { api: fixture.api.name, builds: () => fixture.builds() };
}

function minted(
  fixture: TokenFixture,
): Extract<Parameters<typeof createCredentials>[0], { type: 'shared-secret' }> {
  const { issuer, clientId: audience } = AUTHENTICATOR;
  return { type: 'shared-secret', issuer, audience, subject: 'nodepool', secretFile: fixture.path('key') };
}
