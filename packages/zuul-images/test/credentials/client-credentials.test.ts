import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { OpenIdDouble } from '../../../../test/fixtures/zuul/openid-double.ts';
import { createCredentials, type ZuulCredentials } from '../../src/credentials/zuul-credentials.ts';
import { ON } from '../api/api-fixture.ts';
import { ManualClock } from '../api/manual-clock.ts';
import { zuulFailure } from '../api/zuul-failure.ts';
import { TokenFixture, tokenAfterRefusal, tokenOf } from './token-fixture.ts';

/** Secret with characters that a form encodes. */
const CLIENT = { id: 'image builder', secret: 'secret: of+the client&' };

interface Wiring {
  readonly provider: OpenIdDouble;
  readonly clock: ManualClock;
  readonly credentials: ZuulCredentials;
}

async function wire(t: TestContext, secret = CLIENT.secret, scope?: string): Promise<Wiring> {
  const fixture = await TokenFixture.create(t);
  await fixture.write('client-secret', `${secret}\n`);
  const provider = await OpenIdDouble.start(CLIENT);
  t.after(() => provider[Symbol.asyncDispose]());
  const clock = new ManualClock();
  const settings = {
    issuer: provider.issuer,
    'client-id': CLIENT.id,
    'secret-file': fixture.path('client-secret'),
    ...(scope !== undefined && { scope }),
  };
  const credentials = createCredentials({ 'client-credentials': settings }, { clock });
  assert.ok(credentials !== undefined);
  return { provider, clock, credentials };
}

describe('a token for client credentials', () => {
  test('a client-credentials token is requested once for concurrent callers, and again shortly before it expires', async (t) => {
    const { provider, clock, credentials } = await wire(t);
    const [first, again] = await Promise.all([tokenOf(credentials, ON), tokenOf(credentials, ON)]);
    assert.equal(again, first);
    clock.pass(260_000);
    assert.equal(await tokenOf(credentials, ON), first);
    clock.pass(20_000);
    assert.notEqual(await tokenOf(credentials, ON), first);
    assert.equal(provider.asked.length, 2);
  });

  test('a client-credentials token is requested again after it was rejected', async (t) => {
    const { credentials } = await wire(t);
    const first = await tokenOf(credentials, ON);
    assert.notEqual(await tokenAfterRefusal(credentials, ON), first);
  });

  test('a client-credentials token is requested with the scope, and the secret in a header or in the form', async (t) => {
    const { provider, credentials } = await wire(t, CLIENT.secret, 'zuul');
    await tokenOf(credentials, ON);
    assert.deepEqual(Object.fromEntries(provider.asked[0] ?? []), {
      grant_type: 'client_credentials',
      scope: 'zuul',
    });
    provider.methods = ['client_secret_post'];
    assert.ok(await tokenAfterRefusal(credentials, ON));
    assert.equal(provider.asked[1]?.get('client_id'), CLIENT.id);
  });

  test('a client-credentials token is not issued for a wrong secret', async (t) => {
    const { provider, credentials } = await wire(t, 'wrong secret');
    await assert.rejects(
      tokenOf(credentials, ON),
      (error) =>
        error instanceof Error &&
        error.message.includes(`${provider.issuer}: POST`) &&
        error.message.includes('invalid_client; check the client') &&
        !error.message.includes('wrong'),
    );
  });

  test('a client-credentials token is not requested from another issuer, or over a less secure protocol', async (t) => {
    const { provider, credentials } = await wire(t);
    provider.discovery = { issuer: 'http://127.0.0.1:9/realms/zuul' };
    await assert.rejects(tokenOf(credentials, ON), zuulFailure('invalid-response', 'another issuer'));
    provider.discovery = { token_endpoint: 'ftp://127.0.0.1/token' };
    await assert.rejects(
      tokenOf(credentials, ON),
      zuulFailure('invalid-response', 'token_endpoint is not an http URL'),
    );
    assert.deepEqual(provider.asked, []);
  });
});
