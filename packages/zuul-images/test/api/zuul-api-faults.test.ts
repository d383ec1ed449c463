// Not a unit test: it takes seconds.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { CloudErrorCode } from '@nodepool-builder/image-builder/plugin';
import { waitUntil } from '../../../../test/fixtures/wait-until.ts';
import type { ZuulFault } from '../../../../test/fixtures/zuul/faults.ts';
import { QUERY, startZuul } from '../../../../test/fixtures/zuul/start-zuul.ts';
import { ZuulHttp } from '../../src/api/zuul-http.ts';
import { ApiFixture } from './api-fixture.ts';
import { zuulFailure } from './zuul-failure.ts';

describe('a transient error', () => {
  const pauses: readonly (readonly [fault: ZuulFault, seconds: number])[] = [
    ['internal-error', 1],
    ['unavailable', 7],
    ['tenant-not-ready', 1],
    ['too-many-requests', 3],
    ['cut', 1],
  ];
  for (const [fault, seconds] of pauses) {
    test(`the transient error ${fault} is retried after ${seconds} s`, async (t) => {
      const zuul = await startZuul(t);
      const { uuid } = zuul.table().add();
      zuul.fail(fault);
      const fixture = new ApiFixture(zuul);
      assert.deepEqual(await fixture.uuids(), [uuid]);
      assert.deepEqual(fixture.clock.sleeps, [seconds * 1000]);
      assert.equal(fixture.logger.lines.length, 1);
    });
  }

  test('a transient error is retried after increasing delays, then thrown', async (t) => {
    const zuul = await startZuul(t);
    zuul.fail(...Array.from({ length: 4 }, () => 'internal-error' as const));
    const fixture = new ApiFixture(zuul);
    await assert.rejects(fixture.builds(), zuulFailure('service-unavailable', zuul.url, '500'));
    assert.deepEqual(fixture.clock.sleeps, [1000, 2000, 4000]);
  });

  test('a transient error is not retried if Retry-After is an hour', async (t) => {
    const zuul = await startZuul(t);
    zuul.fail('unavailable-for-long');
    const fixture = new ApiFixture(zuul);
    await assert.rejects(fixture.builds(), zuulFailure('service-unavailable', '503'));
    assert.deepEqual(fixture.clock.sleeps, []);
  });

  test('a transient error may be a timeout', async (t) => {
    const zuul = await startZuul(t);
    zuul.fail('silent', 'silent', 'silent', 'silent');
    const fixture = new ApiFixture(zuul, { http: new ZuulHttp({ timeout: 0.5 }) });
    await assert.rejects(fixture.builds(), zuulFailure('connection-failed', 'no response'));
    assert.equal(zuul.listings.length, 4);
  });
});

describe('invalid responses', () => {
  const faults: readonly (readonly [ZuulFault, CloudErrorCode, ...string[]])[] = [
    ['login-page', 'invalid-response', 'text/html', 'login'],
    ['login-redirect', 'redirected', '302 Found to http://localhost:9;', 'login'],
    ['half-json', 'invalid-response', 'not JSON'],
    ['no-list', 'invalid-response', 'not a list'],
    ['no-uuid', 'invalid-response', 'uuid is missing'],
  ];
  for (const [fault, code, ...words] of faults) {
    test(`the invalid response ${fault} is not retried`, async (t) => {
      const zuul = await startZuul(t);
      zuul.fail(fault);
      const fixture = new ApiFixture(zuul);
      await assert.rejects(
        fixture.builds(),
        zuulFailure(code, `Zuul API ${zuul.url}: GET /api/tenant/example/builds`, ...words),
      );
      assert.deepEqual(fixture.clock.sleeps, []);
    });
  }
});

test('a rejected page of 50 builds is requested with fewer, then the rejection is thrown', async (t) => {
  const zuul = await startZuul(t);
  const { uuid } = zuul.table().add();
  zuul.fail('bad-request');
  assert.deepEqual(await new ApiFixture(zuul).uuids(), [uuid]);
  const limits = zuul.listings.map(({ query }) => query.get('limit'));
  assert.deepEqual(limits, ['50', '10']);
  zuul.fail('bad-request', 'bad-request');
  const fixture = new ApiFixture(zuul);
  await assert.rejects(fixture.builds(), zuulFailure('bad-request', '/builds: 400 Bad Request'));
  assert.deepEqual(fixture.clock.sleeps, []);
});

test('a build that cannot be read is ignored with one warning, and the others are listed', async (t) => {
  const zuul = await startZuul(t);
  const { uuid } = zuul.table().add();
  zuul.table().add([], { uuid: 7 as never });
  const fixture = new ApiFixture(zuul);
  for (const _ of [1, 2]) assert.deepEqual(await fixture.uuids(), [uuid]);
  const warnings = fixture.logger.lines.filter((line) => line.startsWith('warn'));
  assert.equal(warnings.length, 1);
  assert.match(warnings[0] ?? '', /ignoring a build that cannot be read: uuid is not a string$/);
});

test('a redirect loop of the Zuul API causes an error', async (t) => {
  const zuul = await startZuul(t);
  zuul.fail(...Array.from({ length: 20 }, () => 'circle' as const));
  await assert.rejects(new ApiFixture(zuul).builds(), zuulFailure('redirected', 'in a loop'));
});

test('an unreachable Zuul API causes an error', async (t) => {
  // Nothing listens on port 9, which is outside Linux's range of ephemeral ports.
  const fixture = new ApiFixture(await startZuul(t), { apiUrl: 'http://127.0.0.1:9/' });
  await assert.rejects(fixture.builds(), zuulFailure('connection-failed', 'ECONNREFUSED'));
});

test('a request to the Zuul API ends when the signal aborts', async (t) => {
  const zuul = await startZuul(t);
  zuul.fail('silent');
  const controller = new AbortController();
  const reason = new Error('enough');
  const given = assert.rejects(new ApiFixture(zuul).builds(QUERY, controller.signal), reason);
  await waitUntil('the request to arrive', () => zuul.listings.length === 1);
  controller.abort(reason);
  await given;
});
