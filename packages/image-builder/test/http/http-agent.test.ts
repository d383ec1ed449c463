import assert from 'node:assert/strict';
import { once } from 'node:events';
import { copyFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { inspect } from 'node:util';
import {
  type CertificateAuthority,
  createAuthority,
} from '../../../../test/fixtures/certificate-authority.ts';
import { type ForwardProxyOptions, startForwardProxy } from '../../../../test/fixtures/forward-proxy.ts';
import { temporaryDirectory } from '../../../../test/fixtures/temporary-directory.ts';
import { HttpAgent } from '../../src/http/http-agent.ts';
import { HttpClient, NetworkError } from '../../src/http/http-client.ts';

type Environment = Readonly<Record<string, string>>;

function respond({ method, url, headers }: IncomingMessage, response: ServerResponse): void {
  response.end(`${method} ${url} ${headers['proxy-authorization'] ?? ''}`.trim());
}

/** Starts a server that responds with the request's method and path, and its Proxy-Authorization. */
async function startServer(t: TestContext, tls?: { cert: string; key: string }): Promise<number> {
  const server: Server = tls === undefined ? createServer(respond) : createTlsServer(tls, respond);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return (server.address() as AddressInfo).port;
}

async function startProxy(
  t: TestContext,
  options: ForwardProxyOptions = {},
): Promise<Awaited<ReturnType<typeof startForwardProxy>>> {
  const proxy = await startForwardProxy(options);
  t.after(() => proxy.close());
  return proxy;
}

async function authority(t: TestContext): Promise<CertificateAuthority> {
  return await createAuthority(join(await temporaryDirectory(t), 'authority'));
}

/** Starts a TLS server with a certificate of the authority for 127.0.0.1. */
async function startTls(t: TestContext, site: CertificateAuthority): Promise<number> {
  const { cert, key } = await site.issue('server', '127.0.0.1');
  return await startServer(t, { cert: await readFile(cert, 'utf8'), key: await readFile(key, 'utf8') });
}

async function get(
  t: TestContext,
  url: string,
  environment: Environment,
  keepAlive = false,
): Promise<string> {
  const agent = new HttpAgent({ environment, keepAlive });
  t.after(() => agent.destroy());
  return (await new HttpClient({ timeout: 20, agent }).send({ url: new URL(url) })).body;
}

async function failure(t: TestContext, url: string, environment: Environment): Promise<NetworkError> {
  const error: unknown = await get(t, url, environment).catch((reason: unknown) => reason);
  assert.ok(error instanceof NetworkError, inspect(error));
  return error;
}

test('plain HTTP goes through a proxy that requires a password, which the server does not see', async (t) => {
  const target = await startServer(t);
  const proxy = await startProxy(t, { target, login: 'ci:p%s@/ä' });
  const body = await get(t, 'http://glance.invalid:9292/v2?a=b', { http_proxy: proxy.url });
  assert.deepEqual(proxy.requests, ['GET http://glance.invalid:9292/v2?a=b']);
  assert.match(body, /^GET \/v2\?a=b/);
});

test('TLS goes through a proxy’s tunnel, with a name and with an address', async (t) => {
  const site = await authority(t);
  const target = await startTls(t, site);
  const proxy = await startProxy(t, { target, login: 'ci:secret' });
  const environment = { ALL_PROXY: proxy.url.replace('http://', ''), REQUESTS_CA_BUNDLE: site.ca };
  assert.equal(await get(t, `https://127.0.0.1:${target}/v3`, environment), 'GET /v3');
  const { kind } = await failure(t, 'https://glance.invalid/v3', environment);
  assert.equal(kind, 'other-host-name');
  assert.deepEqual(proxy.requests, [`CONNECT 127.0.0.1:${target}`, 'CONNECT glance.invalid:443']);
});

test('an address’s certificate is compared with the address, also behind a proxy', async (t) => {
  const site = await authority(t);
  const { cert, key } = await site.issue('server', '127.0.0.2');
  const tls = { cert: await readFile(cert, 'utf8'), key: await readFile(key, 'utf8') };
  const target = await startServer(t, tls);
  const proxy = await startProxy(t, { target });
  const environment = { https_proxy: proxy.url, CURL_CA_BUNDLE: site.ca };
  assert.equal(await get(t, 'https://127.0.0.2/', environment), 'GET /');
  assert.equal((await failure(t, 'https://127.0.0.1/', environment)).kind, 'other-host-name');
});

test('a proxy may itself need TLS', async (t) => {
  const site = await authority(t);
  const { cert, key } = await site.issue('proxy', '127.0.0.1');
  const tls = { cert: await readFile(cert, 'utf8'), key: await readFile(key, 'utf8') };
  const target = await startTls(t, site);
  const proxy = await startProxy(t, { tls });
  const environment = { all_proxy: proxy.url, REQUESTS_CA_BUNDLE: site.ca };
  assert.equal(await get(t, `https://127.0.0.1:${target}/a`, environment), 'GET /a');
  const plain = await startServer(t);
  assert.equal(await get(t, `http://127.0.0.1:${plain}/b`, environment), 'GET /b');
  assert.equal(proxy.requests.length, 2);
});

test('hosts in no_proxy are connected to directly', async (t) => {
  const target = await startServer(t);
  const environment = { http_proxy: 'http://127.0.0.1:1', no_proxy: '127.0.0.0/8' };
  assert.equal(await get(t, `http://127.0.0.1:${target}/`, environment), 'GET /');
});

test('one connection serves several requests, directly and through a tunnel', async (t) => {
  const site = await authority(t);
  const target = await startTls(t, site);
  const proxy = await startProxy(t);
  for (const environment of [
    { REQUESTS_CA_BUNDLE: site.ca },
    { https_proxy: proxy.url, REQUESTS_CA_BUNDLE: site.ca },
  ]) {
    const agent = new HttpAgent({ environment, keepAlive: true });
    t.after(() => agent.destroy());
    const client = new HttpClient({ timeout: 20, agent });
    for (const path of ['/a', '/b', '/c']) {
      const { body } = await client.send({ url: new URL(`https://127.0.0.1:${target}${path}`) });
      assert.equal(body, `GET ${path}`);
    }
  }
  assert.equal(proxy.requests.length, 1);
});

test('a proxy that rejects the password causes an error with a remedy and without the password', async (t) => {
  const target = await startServer(t);
  const proxy = await startProxy(t, { target, login: 'ci:secret' });
  const wrong = `http://ci:hunter2@127.0.0.1:${proxy.port}`;
  for (const url of ['http://glance.invalid/', 'https://glance.invalid/']) {
    const error = await failure(t, url, { all_proxy: wrong });
    assert.equal(error.kind, 'not-configured');
    assert.equal(
      error.message,
      `the proxy 127.0.0.1:${proxy.port} rejects the connection with status 407; ` +
        'set a user and a password in its URL, percent-encoded: http://user:password@host:port',
    );
    assert.doesNotMatch(inspect(error, { depth: Infinity, showHidden: true }), /hunter2/);
  }
});

test('a rejected tunnel’s status is not mistaken for the server’s response', async (t) => {
  for (const [status, kind] of [
    [403, 'not-configured'],
    [404, 'not-configured'],
    [503, 'not-sent'],
  ] as const) {
    const proxy = await startProxy(t, { refuses: status });
    const error = await failure(t, 'https://glance.invalid/', { https_proxy: proxy.url });
    assert.equal(error.kind, kind);
    assert.match(error.message, new RegExp(`the proxy 127.0.0.1:${proxy.port} .* status ${status}`));
  }
});

test('the error for an unreachable proxy names it', async (t) => {
  const dead = await failure(t, 'http://glance.invalid/', { http_proxy: 'http://127.0.0.1:1' });
  assert.match(dead.message, /^the proxy 127\.0\.0\.1:1 cannot be used: connect ECONNREFUSED/);
  assert.equal(dead.kind, 'not-sent');
  for (const url of ['http://glance.invalid/', 'https://glance.invalid/']) {
    const unknown = await failure(t, url, { all_proxy: 'http://user:hunter2@proxy.invalid:3128' });
    assert.match(
      unknown.message,
      /^the proxy proxy\.invalid:3128 cannot be used: getaddrinfo E\w+ proxy\.invalid$/,
    );
    assert.equal(unknown.kind, 'not-sent');
  }
});

test('a SOCKS proxy causes an error that names the variable', async (t) => {
  const { message, kind } = await failure(t, 'https://s3.invalid/', { ALL_PROXY: 'socks5://127.0.0.1:1080' });
  assert.match(message, /^all_proxy names a SOCKS proxy, which is not supported; set it to http:/);
  assert.equal(kind, 'not-configured');
});

test('an abort ends the wait for a silent proxy', async (t) => {
  const proxy = await startProxy(t, { isSilent: true });
  const agent = new HttpAgent({ environment: { https_proxy: proxy.url } });
  const abort = new AbortController();
  const sent = new HttpClient({ timeout: 60, agent }).send({
    url: new URL('https://s3.invalid/'),
    signal: abort.signal,
  });
  sent.catch(() => undefined);
  while (proxy.requests.length === 0) await new Promise((resolve) => setImmediate(resolve));
  abort.abort(new Error('enough'));
  await assert.rejects(sent, { message: 'enough' });
});

test('certificate authorities come from a file, an openssl rehash directory, or the client itself', async (t) => {
  const [site, other] = [await authority(t), await authority(t)];
  const port = await startTls(t, site);
  const url = `https://127.0.0.1:${port}/`;
  const directory = join(await temporaryDirectory(t), 'certs');
  await mkdir(directory);
  await copyFile(site.ca, join(directory, '0a1b2c3d.0'));
  await writeFile(join(directory, 'README'), 'no certificate');
  for (const environment of [
    { REQUESTS_CA_BUNDLE: site.ca },
    { CURL_CA_BUNDLE: site.ca },
    { REQUESTS_CA_BUNDLE: directory },
    { REQUESTS_CA_BUNDLE: '', CURL_CA_BUNDLE: directory },
    { REQUESTS_CA_BUNDLE: site.ca, CURL_CA_BUNDLE: other.ca },
  ] as Environment[]) {
    assert.equal(await get(t, url, environment), 'GET /', JSON.stringify(environment));
  }
  for (const environment of [
    {},
    { REQUESTS_CA_BUNDLE: other.ca },
    { REQUESTS_CA_BUNDLE: other.ca, CURL_CA_BUNDLE: site.ca },
  ] as Environment[]) {
    assert.equal((await failure(t, url, environment)).kind, 'unknown-authority');
  }
  const own = new HttpAgent({ environment: { REQUESTS_CA_BUNDLE: other.ca }, ca: await readFile(site.ca) });
  const further = new HttpAgent({
    environment: { REQUESTS_CA_BUNDLE: other.ca },
    furtherCa: await readFile(site.ca, 'utf8'),
  });
  for (const agent of [own, further]) {
    assert.equal((await new HttpClient({ timeout: 20, agent }).send({ url: new URL(url) })).body, 'GET /');
  }
});

test('certificate authorities that cannot be read cause an error that names the variable', async (t) => {
  const directory = await temporaryDirectory(t);
  await writeFile(join(directory, 'empty.pem'), '');
  for (const [name, path, message] of [
    [
      'REQUESTS_CA_BUNDLE',
      '/nowhere/ca.pem',
      /^REQUESTS_CA_BUNDLE cannot be used: ENOENT: .*; set it to a PEM file/,
    ],
    [
      'CURL_CA_BUNDLE',
      join(directory, 'empty.pem'),
      /^CURL_CA_BUNDLE cannot be used: .*empty\.pem contains no certificate;/,
    ],
    [
      'CURL_CA_BUNDLE',
      directory,
      /^CURL_CA_BUNDLE cannot be used: .* contains no certificates with names of openssl rehash;/,
    ],
  ] as const) {
    const error = await failure(t, 'https://127.0.0.1:1/', { [name]: path });
    assert.match(error.message, message);
    assert.equal(error.kind, 'not-configured');
  }
  const target = await startServer(t);
  assert.equal(await get(t, `http://127.0.0.1:${target}/`, { REQUESTS_CA_BUNDLE: '/nowhere' }), 'GET /');
});
