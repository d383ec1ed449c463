import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { it, type TestContext } from 'node:test';
import { inspect } from 'node:util';
import { selfSigned } from '../../../../test/fixtures/self-signed.ts';
import { Transport } from '../../src/session/transport.ts';
import { settingsWith } from '../fixtures/cloud-settings.ts';
import { HttpDouble } from '../fixtures/http-double.ts';
import { SILENT } from '../fixtures/silent-logger.ts';

/** A proxy that tunnels (CONNECT) to this server for any host, with the requested hosts. */
async function startTunnel(t: TestContext, target: string): Promise<{ url: string; hosts: string[] }> {
  const hosts: string[] = [];
  const proxy = createServer().on('connect', ({ url }, client: Socket) => {
    hosts.push(String(url));
    const server = connect(Number(new URL(target).port), '127.0.0.1', () => {
      client.write('HTTP/1.1 200 Connection established\r\n\r\n');
      client.pipe(server).pipe(client);
    });
    for (const socket of [client, server]) socket.on('error', () => undefined);
  });
  await once(proxy.listen(0, '127.0.0.1'), 'listening');
  t.after(() => proxy.close());
  return { url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`, hosts };
}

function fourBytes(): Readable {
  return Readable.from([Buffer.from('data')]);
}

it('a proxy of the environment is used, except for the hosts of no_proxy', async (t) => {
  const proxy = await HttpDouble.start(() => ({ status: 200, text: 'by the proxy' }));
  t.after(() => proxy[Symbol.asyncDispose]());
  const proxyEnv = { http_proxy: proxy.url, no_proxy: 'other.invalid' };
  const settings = settingsWith({ type: 'none', endpoint: 'http://unused' });
  const transport = new Transport(settings, { logger: SILENT, proxyEnv });
  const url = new URL('http://glance.invalid/v2/images');
  assert.equal((await transport.send({ method: 'GET', url })).body, 'by the proxy');
  assert.equal(proxy.requests[0]?.path, url.href);
  await assert.rejects(transport.send({ method: 'GET', url: new URL('http://other.invalid/') }));
});

it('TLS through a proxy verifies the certificate, in a PUT as well', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'openstack-proxy-'));
  t.after(() => rm(directory, { recursive: true }));
  const pair = await selfSigned();
  const caFile = join(directory, 'ca.crt');
  await writeFile(caFile, pair.cert);
  const server = await HttpDouble.start(({ body }) => ({ status: 200, text: `got ${body}` }), pair);
  t.after(() => server[Symbol.asyncDispose]());
  const tunnel = await startTunnel(t, server.url);
  const settings = settingsWith({ type: 'none', endpoint: server.url }, { tls: { verify: true, caFile } });
  const proxyEnv = { https_proxy: tunnel.url };
  const transport = new Transport(settings, { logger: SILENT, proxyEnv });
  const url = new URL(server.url);
  assert.equal((await transport.send({ method: 'GET', url })).body, 'got ');
  const answer = await transport.put({ url, headers: {}, body: fourBytes, size: 4, stallTimeout: 60 });
  assert.equal(answer.body, 'got data');
  assert.deepEqual(tunnel.hosts, [url.host, url.host]);
});

it('the error of a proxy that refuses a tunnel has no password', async (t) => {
  const proxy = createServer().on('connect', (_request, client: Socket) => {
    client.end('HTTP/1.1 407 Proxy Authentication Required\r\n\r\n');
  });
  await once(proxy.listen(0, '127.0.0.1'), 'listening');
  t.after(() => proxy.close());
  const proxyEnv = { https_proxy: `http://ci:hunter2@127.0.0.1:${(proxy.address() as AddressInfo).port}` };
  const settings = settingsWith({ type: 'none', endpoint: 'http://unused' });
  const transport = new Transport(settings, { logger: SILENT, proxyEnv });
  await assert.rejects(
    transport.send({ method: 'GET', url: new URL('https://glance.invalid/') }),
    (error: Error) => {
      assert.match(error.message, /407/);
      assert.doesNotMatch(inspect(error, { depth: Infinity, showHidden: true }), /hunter2/);
      return true;
    },
  );
});
