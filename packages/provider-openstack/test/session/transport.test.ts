import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { describe, it } from 'node:test';
import { SYSTEM_CLOCK } from '@nodepool-builder/image-builder/internal';
import { HttpDouble } from '../../../../test/doubles/http-double.ts';
import { Transport } from '../../src/session/transport.ts';
import { settingsWith } from '../fixtures/cloud-settings.ts';
import { failsWith } from '../fixtures/fails-with.ts';
import { ManualClock } from '../fixtures/manual-clock.ts';
import type { Ending } from '../fixtures/plain-client.ts';
import { SILENT } from '../fixtures/silent-logger.ts';

async function startDouble(t: Ending, ...handler: Parameters<typeof HttpDouble.start>): Promise<HttpDouble> {
  const http = await HttpDouble.start(...handler);
  t.after(() => http[Symbol.asyncDispose]());
  return http;
}

function oneByte(): Readable {
  return Readable.from([Buffer.from('x')]);
}

function transportTo({ apiTimeout = 60, rate = 0, clock = SYSTEM_CLOCK } = {}): Transport {
  const settings = settingsWith({ type: 'none', endpoint: 'http://unused' }, { apiTimeout });
  return new Transport(settings, { clock, rate, logger: SILENT });
}

describe('the rate limit', () => {
  it('the rate limit separates the starts of cloud requests of all kinds', async (t) => {
    const http = await startDouble(t, () => ({ status: 200 }));
    const clock = new ManualClock();
    const transport = transportTo({ rate: 1, clock });
    const url = new URL(http.url);
    await transport.send({ method: 'GET', url });
    await transport.put({ url, headers: {}, body: oneByte, size: 1 });
    await transport.send({ method: 'DELETE', url });
    assert.deepEqual(clock.sleeps, [1000, 1000]);
  });

  it('the rate limit does not delay cloud requests during a PUT', async (t) => {
    const http = await startDouble(t, () => ({ status: 204 }));
    const transport = transportTo({ rate: 0.001 });
    const url = new URL(http.url);
    const body = new Readable({ read: () => undefined });
    const asked = Promise.withResolvers<void>();
    const put = transport.put({
      url,
      headers: {},
      body: () => {
        asked.resolve();
        return body;
      },
      size: 1,
    });
    await asked.promise;
    assert.equal((await transport.send({ method: 'GET', url })).status, 204);
    body.push('x');
    body.push(null);
    assert.equal((await put).status, 204);
  });
});

describe('a request', () => {
  it('a cloud request without a response fails after apiTimeout', async (t) => {
    const http = await startDouble(t, () => undefined);
    const transport = transportTo({ apiTimeout: 0.05 });
    const request = transport.send({ method: 'GET', url: new URL('/v2/images', http.url) });
    await assert.rejects(request, failsWith('connection-failed', 'cloud test: GET', '/v2/images'));
  });

  it('a cloud request has its own connection', async (t) => {
    const http = await startDouble(t, () => ({ status: 200 }));
    const { headers } = await transportTo().send({ method: 'GET', url: new URL(http.url) });
    assert.equal(headers.connection, 'close');
  });

  it('a cloud request to a closed port fails without the URL’s query in the error', async (t) => {
    const http = await startDouble(t, () => ({ status: 200 }));
    const url = new URL('/v1/object?temp_url_sig=secret', http.url);
    await http[Symbol.asyncDispose]();
    await assert.rejects(transportTo().send({ method: 'GET', url }), (error: Error) => {
      assert.doesNotMatch(error.message, /secret/);
      return failsWith('connection-failed', '/v1/object', 'ECONNREFUSED')(error);
    });
  });

  it('a failed cloud request has no request header in its cause', async (t) => {
    const http = await startDouble(t, (_request, raw) => void raw.socket.destroy());
    const headers = { 'x-auth-token': 'secret' };
    const request = transportTo().send({ method: 'GET', url: new URL(http.url), headers });
    await assert.rejects(request, (error: Error) => {
      assert.ok(error.cause instanceof Error);
      assert.deepEqual(
        Object.keys(error.cause).filter((key) => !['code', 'errno', 'syscall'].includes(key)),
        [],
      );
      return true;
    });
  });
});

describe('a redirect', () => {
  it('a redirect to the same server is followed with the same method and body', async (t) => {
    const http = await startDouble(t, ({ path }) =>
      path === '/identity' ? { status: 301, headers: { location: '/identity/v3' } } : { status: 201 },
    );
    const url = new URL('/identity', http.url);
    const headers = { 'x-auth-token': 't' };
    assert.equal((await transportTo().send({ method: 'POST', url, headers, body: '{}' })).status, 201);
    const last = http.requests.at(-1);
    assert.deepEqual([last?.method, last?.body, last?.headers['x-auth-token']], ['POST', '{}', 't']);
  });

  it('a redirect that would change the method or drop the body causes an error', async (t) => {
    const http = await startDouble(t, ({ path }) =>
      path === '/303' ? { status: 303, headers: { location: '/other' } } : { status: 200 },
    );
    const request = { method: 'DELETE', url: new URL('/303', http.url), headers: {} } as const;
    const response = await transportTo().send(request);
    assert.deepEqual([response.status, http.requests.length], [303, 1]);
    assert.ok(
      failsWith(
        'invalid-response',
        '303 See Other: to /other; set',
      )(transportTo().responseError(request, response)),
    );
  });

  it('a redirect to another server causes an error with its target', async (t) => {
    const http = await startDouble(t, () => ({
      status: 302,
      headers: { location: 'http://localhost:1/?signature=s' },
    }));
    const request = { method: 'GET', url: new URL(http.url), headers: { 'x-auth-token': 'gAAAA' } } as const;
    const response = await transportTo().send(request);
    assert.equal(response.status, 302);
    const error = transportTo().responseError(request, response);
    assert.ok(
      failsWith('invalid-response', '302', 'to http://localhost:1/; set the URL of the service')(error),
    );
  });
});

it('a cloud request that is aborted in the rate limit’s queue is not sent', async (t) => {
  const http = await startDouble(t, () => ({ status: 200 }));
  const transport = transportTo({ rate: 1e6 });
  const url = new URL(http.url);
  await transport.send({ method: 'GET', url });
  const controller = new AbortController();
  const waiting = transport.send({ method: 'GET', url, signal: controller.signal });
  controller.abort();
  await assert.rejects(waiting);
  assert.equal(http.requests.length, 1);
});
