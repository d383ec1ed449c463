import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { RecordingLogger } from '../../../../test/fixtures/recording-logger.ts';
import { QUERY, startZuul } from '../../../../test/fixtures/zuul/start-zuul.ts';
import type { ZuulDoubleOptions } from '../../../../test/fixtures/zuul/zuul-double.ts';
import { ZuulApi } from '../../src/api/zuul-api.ts';
import { ApiFixture, allBuilds, ON } from './api-fixture.ts';
import { zuulFailure } from './zuul-failure.ts';

interface Form {
  readonly what: string;
  readonly served: ZuulDoubleOptions;
  /** Path of api-url. */
  readonly path?: string;
  /** Path of the builds request. */
  readonly asked: string;
}

const TWO = ['example', 'my tenant'];

const FORMS: readonly Form[] = [
  {
    what: 'below a path',
    served: { prefix: '/zuul' },
    path: 't/example',
    asked: '/zuul/api/tenant/example/builds',
  },
  {
    what: 'in the URL of its API',
    served: { tenants: TWO },
    path: 'api/tenant/example',
    asked: '/api/tenant/example/builds',
  },
  {
    what: 'with a space in its name, in the URL of its page',
    served: { tenants: TWO },
    path: 't/my%20tenant/builds?x',
    asked: '/api/tenant/my%20tenant/builds',
  },
  { what: 'that is the only one', served: {}, asked: '/api/tenant/example/builds' },
  { what: 'with a white label', served: { tenants: TWO, whiteLabel: 'example' }, asked: '/api/builds' },
  {
    what: 'with a white label, in the URL of its page, below a path',
    served: { tenants: TWO, whiteLabel: 'example', prefix: '/ci' },
    path: 't/example',
    asked: '/ci/api/builds',
  },
];

describe('the API of a tenant', () => {
  for (const { what, served, path = '', asked } of FORMS) {
    test(`a tenant ${what} is queried at its own API`, async (t) => {
      const zuul = await startZuul(t, served);
      const { uuid } = zuul.table(path.startsWith('t/my') ? 'my tenant' : 'example').add();
      const api = new ZuulApi({ apiUrl: `${zuul.url}${path}`, logger: new RecordingLogger() });
      const builds = await allBuilds(api, QUERY, ON);
      assert.deepEqual(
        builds.map((build) => build.uuid),
        [uuid],
      );
      assert.deepEqual(
        zuul.listings.map((listing) => listing.path),
        [asked],
      );
    });
  }

  test('an api-url must name the Zuul tenant if there are several', async (t) => {
    const zuul = await startZuul(t, { tenants: TWO });
    const { logger } = new ApiFixture(zuul);
    const api = new ZuulApi({ apiUrl: zuul.url, logger });
    const first = api
      .builds({ project: 'p', pipelines: ['q'], job: 'j' }, new AbortController().signal)
      .next();
    await assert.rejects(first, zuulFailure('invalid-settings', `${zuul.url}t/TENANT`, 'example, my tenant'));
  });

  test('the configured tenant must be the white label’s', async (t) => {
    const zuul = await startZuul(t, { tenants: TWO, whiteLabel: 'example' });
    const fixture = new ApiFixture(zuul, { apiUrl: `${zuul.url}t/my%20tenant` });
    await assert.rejects(
      fixture.builds(),
      zuulFailure('invalid-settings', 'only the tenant "example"', '"my tenant"'),
    );
  });

  for (const version of ['9.5', '11.3', '4.0'] as const) {
    test(`a tenant that does not exist is not mistaken for an old server, with Zuul ${version}`, async (t) => {
      const zuul = await startZuul(t, { version });
      const fixture = new ApiFixture(zuul, { apiUrl: `${zuul.url}t/nobody` });
      await assert.rejects(
        fixture.builds(),
        zuulFailure('tenant-unknown', '/api/tenant/nobody/builds', '404', 'correct its name'),
      );
      assert.equal(zuul.listings.length, 1);
    });
  }

  test('a Zuul tenant is looked up once', async (t) => {
    const zuul = await startZuul(t);
    const fixture = new ApiFixture(zuul);
    await fixture.builds();
    await fixture.builds();
    assert.equal(zuul.requests.filter(({ path }) => path === '/api/info').length, 1);
  });

  test('a Zuul tenant is not found at a wrong api-url', async (t) => {
    const zuul = await startZuul(t, { prefix: '/zuul' });
    const fixture = new ApiFixture(zuul, { apiUrl: `${zuul.origin}/` });
    await assert.rejects(fixture.builds(), zuulFailure('not-found', 'GET /api/info', 'check the api-url'));
  });
});
