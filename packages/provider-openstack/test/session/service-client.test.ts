import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { describe, it } from 'node:test';
import { JsonReader } from '@nodepool-builder/image-builder/plugin';
import { KeystoneDouble } from '../../../../test/doubles/openstack/keystone-double.ts';
import { OpenStackSession } from '../../src/session/openstack-session.ts';
import { ServiceClient } from '../../src/session/service-client.ts';
import { passwordAuth, settingsWith } from '../fixtures/cloud-settings.ts';
import { failsWith } from '../fixtures/fails-with.ts';
import { ManualClock } from '../fixtures/manual-clock.ts';
import { plainClient } from '../fixtures/plain-client.ts';
import { SILENT } from '../fixtures/silent-logger.ts';

const IMAGES = { type: 'image', interface: 'public', version: 'v2' };

function openSession(url: string, clock = new ManualClock()): OpenStackSession {
  return new OpenStackSession(settingsWith(passwordAuth(url)), { logger: SILENT, clock, random: () => 0 });
}

const STRING = new JsonReader({ type: 'string' });

describe('a token', () => {
  it('a token is sent with each request to the catalog’s versioned endpoint', async (t) => {
    const cloud = await KeystoneDouble.start(() => ({ status: 200, json: 'yes' }));
    t.after(() => cloud[Symbol.asyncDispose]());
    const client = new ServiceClient(IMAGES, openSession(cloud.url));
    const { value } = await client.json('GET', '/images', { query: { name: 'a b' }, reader: STRING });
    await client.json('DELETE', '/images/1');
    assert.equal(value, 'yes');
    assert.deepEqual(
      cloud.requests.map(({ method, path, headers }) => [method, path, headers['x-auth-token']]),
      [
        ['GET', '/v2/images?name=a+b', 'token-1'],
        ['DELETE', '/v2/images/1', 'token-1'],
      ],
    );
  });

  it('a token is renewed before it expires', async (t) => {
    const cloud = await KeystoneDouble.start(() => ({ status: 200 }));
    t.after(() => cloud[Symbol.asyncDispose]());
    const clock = new ManualClock();
    const client = new ServiceClient(IMAGES, openSession(cloud.url, clock));
    await client.json('GET', '/1');
    clock.pass(3_500_000);
    await client.json('GET', '/2');
    assert.deepEqual(
      cloud.requests.map(({ headers }) => headers['x-auth-token']),
      ['token-1', 'token-2'],
    );
  });

  it('a token is renewed after a 401, and the request is repeated, even a POST', async (t) => {
    const cloud = await KeystoneDouble.start(({ headers }) => ({
      status: headers['x-auth-token'] === 'token-1' ? 401 : 201,
    }));
    t.after(() => cloud[Symbol.asyncDispose]());
    const client = new ServiceClient(IMAGES, openSession(cloud.url));
    assert.equal((await client.json('POST', '/images', { body: { name: 'x' } })).status, 201);
    assert.deepEqual(
      cloud.requests.map(({ body }) => body),
      ['{"name":"x"}', '{"name":"x"}'],
    );
  });

  it('a token is renewed after a 401 to a PUT, and the body is sent from its start', async (t) => {
    const cloud = await KeystoneDouble.start(({ headers }) => ({
      status: headers['x-auth-token'] === 'token-1' ? 401 : 204,
    }));
    t.after(() => cloud[Symbol.asyncDispose]());
    let bodies = 0;
    const body = (): Readable => {
      bodies += 1;
      return Readable.from([Buffer.from(`body ${bodies}`)]);
    };
    const { status } = await new ServiceClient(IMAGES, openSession(cloud.url)).put('/images/1/file', body, {
      size: 6,
    });
    assert.equal(status, 204);
    assert.deepEqual(
      cloud.requests.map((request) => [request.body, request.headers['content-length']]),
      [
        ['body 1', '6'],
        ['body 2', '6'],
      ],
    );
  });

  it('a redirect on the same host gets the token and the body from its start, and no other redirect does', async (t) => {
    for (const [status, location, expected] of [
      [307, '/v2/elsewhere', 204],
      [308, '/v2/elsewhere', 204],
      [302, '/v2/elsewhere', 302],
      [307, 'http://localhost:1/v2/elsewhere', 307],
      [307, '/v2/images/1/file', 307],
    ] as const) {
      const cloud = await KeystoneDouble.start(({ path }) =>
        path === '/v2/images/1/file' ? { status, headers: { location } } : { status: 204 },
      );
      t.after(() => cloud[Symbol.asyncDispose]());
      const client = new ServiceClient(IMAGES, openSession(cloud.url));
      const sent = client.put('/images/1/file', () => Readable.from([Buffer.from('image')]), { size: 5 });
      if (expected === 204) assert.equal((await sent).status, 204);
      else
        await assert.rejects(
          sent,
          failsWith('invalid-response', `${expected}`, `to ${location}; set the URL of the service`),
        );
      assert.ok(cloud.requests.length <= 6);
      const last = cloud.requests.at(-1);
      if (expected === 204)
        assert.deepEqual([last?.body, last?.headers['x-auth-token']], ['image', 'token-1']);
    }
  });

  it('a token that gets a second 401 causes an error without the token', async (t) => {
    const cloud = await KeystoneDouble.start(({ headers }) => ({
      status: 401,
      text: `bad token ${String(headers['x-auth-token'])}`,
    }));
    t.after(() => cloud[Symbol.asyncDispose]());
    await assert.rejects(
      new ServiceClient(IMAGES, openSession(cloud.url)).json('GET', '/images'),
      (error: Error) => {
        assert.ok(!error.message.includes('token-'), error.message);
        return failsWith('auth-failed', 'cloud test: GET', '/v2/images', 'bad token …')(error);
      },
    );
    assert.equal(cloud.issued, 2);
  });
});

describe('a response', () => {
  it('a response with an expected status causes no error', async (t) => {
    const { client } = await plainClient(t, { status: 404 });
    assert.equal((await client.json('GET', '/images/1', { expect: [200, 404] })).status, 404);
  });

  it('a response with an unexpected status causes an error', async (t) => {
    const { client } = await plainClient(t, { status: 200 });
    await assert.rejects(client.json('DELETE', '/x', { expect: [204] }), failsWith('invalid-response'));
  });

  it('a response with invalid data causes an error', async (t) => {
    const { client } = await plainClient(t, { status: 200, json: 5 });
    const wrong = failsWith('invalid-response', 'GET', '/v2/images', 'it is not a string');
    await assert.rejects(client.json('GET', '/images', { reader: STRING }), wrong);
  });

  it('a response with a web page causes an error', async (t) => {
    const { client } = await plainClient(t, { status: 200, text: '<html>Welcome to the Wi-Fi</html>' });
    await assert.rejects(client.json('GET', '/images', { reader: STRING }), failsWith('invalid-response'));
  });
});

describe('an endpoint', () => {
  it('an endpoint override takes precedence over the catalog and may contain the project', async (t) => {
    const cloud = await KeystoneDouble.start(() => ({ status: 200 }));
    t.after(() => cloud[Symbol.asyncDispose]());
    const endpointOverride = `${new URL(cloud.url).origin}/swift/v1/AUTH_%(project_id)s`;
    const service = { type: 'object-store', interface: 'public', endpointOverride };
    await new ServiceClient(service, openSession(cloud.url)).json('GET', '/images');
    assert.equal(cloud.requests[0]?.path, '/swift/v1/AUTH_p1/images');
  });

  it('an endpoint missing in the catalog causes an error', async (t) => {
    const cloud = await KeystoneDouble.start(() => ({ status: 200 }));
    t.after(() => cloud[Symbol.asyncDispose]());
    const client = new ServiceClient({ type: 'object-store', interface: 'public' }, openSession(cloud.url));
    await assert.rejects(client.json('GET', '/'), failsWith('no-such-service', 'services of type image'));
  });

  it('an endpoint that is not a URL causes an error', async (t) => {
    const { session } = await plainClient(t, { status: 200 });
    const client = new ServiceClient({ ...IMAGES, endpointOverride: 'glance:9292' }, session);
    await assert.rejects(client.json('GET', '/'), failsWith('invalid-settings', '"glance:9292"'));
  });

  it('an endpoint that may contain a password is not shown in an error', async (t) => {
    const { session } = await plainClient(t, { status: 200 });
    for (const endpointOverride of [
      'htps://admin:hunter2@glance:9292',
      'admin:hunter2@glance',
      'g:/?sig=hunter2',
    ]) {
      const client = new ServiceClient({ ...IMAGES, endpointOverride }, session);
      await assert.rejects(client.json('GET', '/'), (error: Error) => {
        assert.doesNotMatch(error.message, /hunter2/);
        return failsWith('invalid-settings', 'is not a URL; it must begin with')(error);
      });
    }
  });
});
