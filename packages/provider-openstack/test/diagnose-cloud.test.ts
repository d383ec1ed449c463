import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { CheckResult } from '@nodepool-builder/image-builder';
import { startDeadServer } from '../../../test/fixtures/dead-server.ts';
import { respondsWith } from '../../../test/fixtures/fault-proxy/faults.ts';
import type { CloudSettings, OpenStackProviderOptions } from '../src/index.ts';
import { openProvider } from './provider-fixture.ts';
import { openRealCloud } from './real-cloud.ts';

type Test = Parameters<typeof openRealCloud>[0];

async function diagnose(
  t: Test,
  settings: CloudSettings,
  options: Partial<OpenStackProviderOptions> = {},
): Promise<readonly CheckResult[]> {
  const results = await Array.fromAsync(openProvider(t, settings, options).diagnose());
  if ('password' in settings.auth) {
    assert.equal(JSON.stringify(results).includes(settings.auth.password), false, 'no secret');
  }
  return results;
}

function problems(results: readonly CheckResult[]): readonly string[] {
  return results.filter(({ status }) => status === 'problem').map(({ subject }) => subject);
}

/** Responses of Glance to `/v2/info/usage` with one quota. */
function usage(quota: string, used: number, limit: number) {
  return respondsWith(200, { body: { usage: { [quota]: { limit, usage: used } } } });
}

const USAGE = { path: /\/info\/usage$/ };

describe('the diagnosis of a cloud', () => {
  test('the cloud diagnosis finds credentials, Glance, import methods, quota and clock good, and changes nothing', async (t) => {
    const { settings, glance, keystone } = await openRealCloud(t);
    const results = await diagnose(t, settings);
    assert.deepEqual(problems(results), []);
    assert.deepEqual(
      results.map(({ subject }) => subject),
      [
        'credentials of provider cloud',
        'Glance of provider cloud',
        'clock, compared with cloud test',
        'import methods of provider cloud',
        'quota of provider cloud',
      ],
    );
    assert.match(
      results[0]?.message ?? '',
      /^Keystone accepts them \(password\); its token is valid for \d+ min$/,
    );
    assert.match(results[3]?.message ?? '', /^a PUT of the file is used; the cloud offers: .*glance-direct/);
    const methods = glance.requests.map(({ method }) => method);
    assert.deepEqual(new Set(methods), new Set(['GET']));
    assert.deepEqual(new Set(keystone.requests.map(({ method }) => method)), new Set(['POST']), 'a token');
  });

  test('the cloud diagnosis names a wrong password, and checks nothing further', async (t) => {
    const { settings, glance } = await openRealCloud(t);
    const auth = { ...settings.auth, password: 'not-the-password' } as CloudSettings['auth'];
    const results = await diagnose(t, { ...settings, auth });
    assert.deepEqual(problems(results), ['credentials of provider cloud']);
    assert.match(results[0]?.remedy ?? '', /^check the credentials of the cloud/);
    assert.deepEqual(glance.requests, []);
  });

  test('the cloud diagnosis does not wait for a Keystone that cannot be reached', async (t) => {
    const { settings } = await openRealCloud(t);
    const dead = await startDeadServer(t);
    const auth = { ...settings.auth, url: `${dead.url}v3` } as CloudSettings['auth'];
    const results = await diagnose(t, { ...settings, auth }, { session: {} });
    assert.deepEqual(problems(results), ['credentials of provider cloud']);
    assert.match(results[0]?.message ?? '', /no response: /);
    assert.equal(dead.connections(), 1, 'without retries');
  });

  test('the cloud diagnosis reports settings that cannot be read', async (t) => {
    const { settings } = await openRealCloud(t);
    const [result, ...others] = await diagnose(t, settings, {
      settings: () => Promise.reject(new Error('clouds.yaml has no cloud "west"; add it')),
    });
    assert.deepEqual(others, []);
    assert.deepEqual(result, {
      subject: 'credentials of provider cloud',
      status: 'problem',
      message: 'clouds.yaml has no cloud "west"',
      remedy: 'add it',
    });
  });

  test('the cloud diagnosis names a region without Glance, and the regions that have it', async (t) => {
    const { settings } = await openRealCloud(t);
    const image = { ...settings.image, regionName: 'Mars' };
    const results = await diagnose(t, { ...settings, image });
    assert.deepEqual(problems(results), ['Glance of provider cloud']);
    const { message = '', remedy } = results.at(-1) ?? {};
    assert.match(
      `${message}; ${remedy}`,
      /no public endpoint .* in region Mars; the cloud has .*glance public in RegionOne/,
    );
  });

  test('the cloud diagnosis names an import method that the cloud does not offer', async (t) => {
    const { settings, glance } = await openRealCloud(t);
    const body = { 'import-methods': { value: ['web-download'] } };
    glance.inject({ path: /\/info\/import$/ }, respondsWith(200, { body }));
    const results = await diagnose(t, settings, { imageImport: { method: 'glance-direct' } });
    assert.deepEqual(problems(results), ['import methods of provider cloud']);
    const found = results.find(({ status }) => status === 'problem');
    assert.equal(found?.message, 'the cloud does not offer glance-direct; it offers web-download');
  });

  test('the cloud diagnosis compares the quota with its use', async (t) => {
    const { settings, glance } = await openRealCloud(t);
    const quota = async (name: string, used: number, limit: number): Promise<CheckResult | undefined> => {
      glance.inject(USAGE, usage(name, used, limit));
      return (await diagnose(t, settings)).find(({ subject }) => subject === 'quota of provider cloud');
    };
    assert.partialDeepStrictEqual(await quota('image_count_total', 5, 10), {
      status: 'ok',
      message: 'images: 5 of 10',
    });
    assert.equal((await quota('image_size_total', 95, 100))?.status, 'warning');
    assert.partialDeepStrictEqual(await quota('image_size_total', 100, 100), {
      status: 'problem',
      message: 'size of all images: 100 MiB of 100 MiB',
    });
    assert.equal((await quota('image_size_total', 100, -1))?.message, 'the cloud reports no limit');
  });

  test('the cloud diagnosis warns about a clock that differs, and certificates that are not verified', async (t) => {
    const { settings, glance } = await openRealCloud(t);
    const date = new Date(Date.now() - 600_000).toUTCString();
    glance.inject(
      { path: /\/images\?limit=1$/ },
      respondsWith(200, { headers: { date }, body: { images: [] } }),
    );
    const results = await diagnose(t, { ...settings, tls: { verify: false } });
    assert.deepEqual(problems(results), ['clock, compared with cloud test']);
    const warning = results.find(({ status }) => status === 'warning');
    assert.equal(warning?.subject, 'certificates of provider cloud');
  });

  test('the cloud diagnosis checks the object store only where images are imported from it', async (t) => {
    const { settings } = await openRealCloud(t);
    const results = await diagnose(t, { ...settings, imageApiUseTasks: true });
    assert.deepEqual(problems(results), ['object store of provider cloud']);
    assert.match(results.at(-1)?.message ?? '', /no public endpoint of a service of type object-store/);
  });
});
