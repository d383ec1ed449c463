import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { it, type TestContext } from 'node:test';
import { inspect } from 'node:util';
import { CloudError } from '@nodepool-builder/image-builder/plugin';
import { HttpDouble } from '../../../../test/doubles/http-double.ts';
import { type ForwardProxy, startForwardProxy } from '../../../../test/fixtures/forward-proxy.ts';
import { selfSigned } from '../../../../test/fixtures/self-signed.ts';
import { withVariables } from '../../../../test/fixtures/with-variables.ts';
import type { CloudSettings } from '../../src/cloud-settings.ts';
import { Transport } from '../../src/session/transport.ts';
import { settingsWith } from '../fixtures/cloud-settings.ts';
import { SILENT } from '../fixtures/silent-logger.ts';

const NONE = { http_proxy: undefined, https_proxy: undefined, all_proxy: undefined, no_proxy: undefined };

async function startProxy(
  t: TestContext,
  options: Parameters<typeof startForwardProxy>[0],
): Promise<ForwardProxy> {
  const proxy = await startForwardProxy(options);
  t.after(() => proxy.close());
  return proxy;
}

function fourBytes(): Readable {
  return Readable.from([Buffer.from('data')]);
}

function transportOf(more: Partial<CloudSettings> = {}): Transport {
  return new Transport(settingsWith({ type: 'none', endpoint: 'http://unused' }, more), { logger: SILENT });
}

it('requests, uploads and downloads to a cloud go through the environment’s proxy', async (t) => {
  const server = await HttpDouble.start(({ body }) => ({ status: 200, text: `got ${body}` }));
  t.after(() => server[Symbol.asyncDispose]());
  const proxy = await startProxy(t, { target: Number(new URL(server.url).port) });
  withVariables(t, { ...NONE, http_proxy: proxy.url });
  const transport = transportOf();
  const url = new URL('http://glance.invalid/v2/images');
  assert.equal((await transport.send({ method: 'GET', url })).body, 'got ');
  const put = await transport.put({ url, headers: {}, body: fourBytes, size: 4 });
  assert.equal(put.body, 'got data');
  const read = await transport.read({ url, headers: {} });
  assert.equal(Buffer.concat(await Array.fromAsync(read.body)).toString(), 'got ');
  assert.deepEqual(proxy.requests, [`GET ${url.href}`, `PUT ${url.href}`, `GET ${url.href}`]);
});

it('TLS to a cloud through a proxy verifies the certificate, in a PUT as well', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'openstack-proxy-'));
  t.after(() => rm(directory, { recursive: true }));
  const pair = await selfSigned();
  const caFile = join(directory, 'ca.crt');
  await writeFile(caFile, pair.cert);
  const server = await HttpDouble.start(({ body }) => ({ status: 200, text: `got ${body}` }), pair);
  t.after(() => server[Symbol.asyncDispose]());
  const url = new URL(server.url);
  const proxy = await startProxy(t, { target: Number(url.port) });
  withVariables(t, { ...NONE, https_proxy: proxy.url });
  const transport = transportOf({ tls: { verify: true, caFile } });
  assert.equal((await transport.send({ method: 'GET', url })).body, 'got ');
  const put = { headers: {}, body: fourBytes, size: 4 };
  assert.equal((await transport.put({ ...put, url })).body, 'got data');
  const other = transport.put({ ...put, url: new URL('https://glance.invalid/') });
  await assert.rejects(other, { code: 'certificate-untrusted' });
  assert.deepEqual(proxy.requests, [
    `CONNECT ${url.host}`,
    `CONNECT ${url.host}`,
    'CONNECT glance.invalid:443',
  ]);
});

it('a proxy that requires a password causes a settings error without the password', async (t) => {
  const proxy = await startProxy(t, { login: 'ci:secret' });
  withVariables(t, { ...NONE, all_proxy: `http://ci:hunter2@127.0.0.1:${proxy.port}` });
  const transport = transportOf();
  const put = { headers: {}, body: fourBytes, size: 4 };
  for (const host of ['http://glance.invalid/', 'https://glance.invalid/']) {
    const url = new URL(host);
    for (const send of [
      () => transport.send({ method: 'GET', url }),
      () => transport.put({ ...put, url }),
      () => transport.read({ url, headers: {} }),
    ]) {
      const error: unknown = await send().catch((reason: unknown) => reason);
      assert.ok(error instanceof CloudError, inspect(error));
      assert.equal(error.code, 'invalid-settings');
      assert.match(
        error.message,
        /the proxy 127\.0\.0\.1:\d+ rejects the connection with status 407; set a user/,
      );
      assert.doesNotMatch(inspect(error, { depth: Infinity, showHidden: true }), /hunter2/);
    }
  }
});
