import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { HttpDouble, type Reply, type SeenRequest } from '../../../../test/doubles/http-double.ts';
import type { CloudAuth } from '../../src/cloud-settings.ts';
import { OpenStackSession } from '../../src/session/openstack-session.ts';
import { ServiceClient } from '../../src/session/service-client.ts';
import { passwordAuth, settingsWith } from '../fixtures/cloud-settings.ts';
import { failsWith } from '../fixtures/fails-with.ts';
import { ManualClock } from '../fixtures/manual-clock.ts';
import type { Ending } from '../fixtures/plain-client.ts';
import { SILENT } from '../fixtures/silent-logger.ts';

/** Creates a cloud with these paths, and records the requested ones. */
async function cloudOf(
  t: Ending,
  replies: (url: string) => Record<string, Reply | ((request: SeenRequest) => Reply)>,
): Promise<{ url: string; paths: () => string[] }> {
  const http = await HttpDouble.start((request) => {
    const reply = replies(http.url)[`${request.method} ${request.path}`] ?? { status: 404 };
    return typeof reply === 'function' ? reply(request) : reply;
  });
  t.after(() => http[Symbol.asyncDispose]());
  return { url: http.url, paths: () => http.requests.map(({ method, path }) => `${method} ${path}`) };
}

/** Sends a request to the image service as this user. */
async function askAs(auth: CloudAuth): Promise<number> {
  const options = { logger: SILENT, clock: new ManualClock(), random: () => 0 };
  const session = new OpenStackSession(settingsWith(auth), options);
  return (await new ServiceClient({ type: 'image', interface: 'public' }, session).json('GET', '/ok')).status;
}

const TIMES = { issued_at: '2026-01-01T00:00:00Z', expires_at: '2026-01-01T01:00:00Z' };

function v3Token(url: string): Reply {
  const endpoints = [{ interface: 'public', region_id: 'one', url: `${url}/image` }];
  return {
    status: 201,
    headers: { 'x-subject-token': 'secret-token' },
    json: { token: { ...TIMES, catalog: [{ type: 'image', name: 'glance', endpoints }] } },
  };
}

function v2Token(url: string): Reply {
  const endpoints = [{ region: 'DFW', publicURL: `${url}/image` }];
  const token = { id: 'secret-token', expires: TIMES.expires_at, issued_at: TIMES.issued_at };
  return {
    status: 200,
    json: { access: { token, serviceCatalog: [{ type: 'image', name: 'i', endpoints }] } },
  };
}

function versions(...paths: string[]): Reply {
  const values = paths.map((path) => ({
    id: path.slice(1),
    status: 'stable',
    links: [{ rel: 'self', href: `${path}/` }],
  }));
  return { status: 300, json: { versions: { values } } };
}

const OK = { 'GET /image/ok': { status: 200 } };

describe('Keystone', () => {
  it('Keystone lists its versions once, then issues tokens', async (t) => {
    const cloud = await cloudOf(t, (url) => ({
      'GET /': versions('/v3', '/v2.0'),
      'POST /v3/auth/tokens': v3Token(url),
      ...OK,
    }));
    assert.equal(await askAs(passwordAuth(cloud.url)), 200);
    assert.deepEqual(cloud.paths(), ['GET /', 'POST /v3/auth/tokens', 'GET /image/ok']);
  });

  it('an old cloud’s Keystone is requested with v2', async (t) => {
    const cloud = await cloudOf(t, (url) => ({
      'POST /v2.0/tokens': ({ body }) => (body.includes('tenantName') ? v2Token(url) : { status: 400 }),
      ...OK,
    }));
    const scope = { project: { name: 'images' } };
    const user = { name: 'builder' };
    const auth: CloudAuth = { type: 'password', url: `${cloud.url}/v2.0/`, user, password: 'pw', scope };
    assert.equal(await askAs(auth), 200);
  });

  it('a Keystone without versions causes an error with a remedy', async (t) => {
    const cloud = await cloudOf(t, () => ({}));
    const wrong = failsWith('invalid-settings', 'auth_url', '/v3');
    await assert.rejects(askAs(passwordAuth(cloud.url)), wrong);
  });

  it('a Keystone behind a load balancer is requested at auth_url, whatever host and scheme its list names', async (t) => {
    const links = [
      'https://inside:5000/identity/v3/',
      'http://inside:5000/identity/v3/',
      'v3/',
      '/identity/v3',
    ];
    for (const href of links) {
      const version = { id: 'v3.14', status: 'stable', links: [{ rel: 'self', href }] };
      const cloud = await cloudOf(t, (url) => ({
        'GET /identity': { status: 300, json: { versions: { values: [version] } } },
        'POST /identity/v3/auth/tokens': v3Token(url),
        ...OK,
      }));
      assert.equal(await askAs(passwordAuth(`${cloud.url}/identity`)), 200, href);
    }
  });

  it('a wrong path to Keystone causes an error about auth_url, and makes nothing appear missing', async (t) => {
    for (const status of [404, 410]) {
      const cloud = await cloudOf(t, () => ({ 'POST /v3/auth/tokens': { status } }));
      const wrong = failsWith(
        'invalid-settings',
        '/v3/auth/tokens',
        `${status}`,
        'correct auth_url in clouds.yaml',
      );
      await assert.rejects(askAs(passwordAuth(`${cloud.url}/v3`)), wrong);
    }
  });

  it('another server’s URL in place of Keystone’s causes an error', async (t) => {
    const cloud = await cloudOf(t, () => ({ 'GET /': { status: 200, text: '<h1>It works!</h1>' } }));
    await assert.rejects(askAs(passwordAuth(cloud.url)), failsWith('invalid-response', 'GET'));
  });

  it('a request to a Keystone that is briefly unavailable is retried', async (t) => {
    const failures: Reply[] = [{ status: 503 }, { status: 500 }];
    const cloud = await cloudOf(t, (url) => ({
      'GET /': () => failures.pop() ?? versions('/v3'),
      'POST /v3/auth/tokens': v3Token(url),
      ...OK,
    }));
    assert.equal(await askAs(passwordAuth(cloud.url)), 200);
  });

  it('a Keystone that stays unavailable gets six requests', async (t) => {
    const cloud = await cloudOf(t, () => ({ 'POST /v3/auth/tokens': { status: 503 } }));
    await assert.rejects(askAs(passwordAuth(`${cloud.url}/v3`)), failsWith('service-unavailable'));
    assert.equal(cloud.paths().length, 6);
  });

  it('Keystone’s rejection causes an error with its message, without the password or the request', async (t) => {
    const cloud = await cloudOf(t, () => ({
      'POST /v3/auth/tokens': ({ body }) => ({
        status: 401,
        json: { error: { message: `Requires authentication: ${body}` } },
      }),
    }));
    const auth = passwordAuth(`${cloud.url}/v3`, 'hunter2-xyz');
    await assert.rejects(askAs(auth), (error: Error) => {
      assert.doesNotMatch(error.message, /hunter2/);
      return failsWith('auth-failed', 'POST', '/v3/auth/tokens', 'Requires authentication')(error);
    });
    assert.equal(cloud.paths().length, 1);
  });

  it('Keystone’s response without a token causes an error that names the missing field', async (t) => {
    const cloud = await cloudOf(t, () => ({ 'POST /v3/auth/tokens': { status: 201, json: {} } }));
    const wrong = failsWith('invalid-response', 'token is missing');
    await assert.rejects(askAs(passwordAuth(`${cloud.url}/v3`)), wrong);
  });

  it('an invalid URL for Keystone causes an error', async () => {
    for (const url of ['keystone:5000', 'not a url', 'ftp://keystone/v3']) {
      await assert.rejects(askAs(passwordAuth(url)), failsWith('invalid-settings', 'auth_url'));
    }
  });
});
