import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { withCode } from '../../../../test/fixtures/with-code.ts';
import { AddressGuard } from '../../src/download/address-guard.ts';
import type { ArtifactAccess } from '../../src/download/http-source.ts';
import { BLOCK, DownloadFixture, oddServer, sendRange } from './download-fixture.ts';

/** Address of a service for this host alone. */
async function innerService(t: TestContext): Promise<{ readonly url: string; readonly asked: () => number }> {
  let asked = 0;
  const server = createServer((request, response) => {
    asked += 1;
    response.end(sendRange(request, response, Buffer.alloc(BLOCK, 'secret')));
  });
  await once(server.listen(0, '127.0.0.2'), 'listening');
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return { url: `http://127.0.0.2:${(server.address() as AddressInfo).port}/secret`, asked: () => asked };
}

/** Access to the internet, which 127.0.0.1 represents. */
function internet(...allowedHosts: readonly string[]): { readonly access: ArtifactAccess } {
  const configuredUrls = ['http://203.0.113.5/'];
  return {
    access: { guard: new AddressGuard({ configuredUrls, allowedHosts: ['127.0.0.1', ...allowedHosts] }) },
  };
}

test('a redirect to a service of this host is followed only if a configured URL is on this host', async (t) => {
  const inner = await innerService(t);
  const server = await oddServer(t, (_request, response) => {
    response.writeHead(302, { location: inner.url }).end();
  });
  const fixture = await DownloadFixture.create(t);
  const url = `${server.url}/image.raw`;
  await assert.rejects(
    fixture.download(url, internet()),
    withCode('artifact-refused', /127\.0\.0\.2 is a loopback address; .*allowed-hosts/),
  );
  assert.equal(inner.asked(), 0);
  assert.deepEqual(await fixture.partial(), []);
  await fixture.download(url, internet('127.0.0.2'));
  await fixture.download(url);
});

test('an internal address is rejected before a request if no configured URL is in its network', async (t) => {
  const inner = await innerService(t);
  const fixture = await DownloadFixture.create(t);
  await assert.rejects(fixture.download(inner.url, internet()), withCode('artifact-refused'));
  assert.equal(inner.asked(), 0);
});

for (const location of [
  'http://169.254.169.254/latest/meta-data/',
  'http://2852039166/latest/meta-data/',
  'http://[::ffff:169.254.169.254]/',
  'http://[64:ff9b::a9fe:a9fe]/',
  'http://10.0.0.1/',
  'http://[fd00:ec2::254]/',
]) {
  test(`a redirect from this host to ${location} is not followed`, async (t) => {
    const server = await oddServer(t, (_request, response) => {
      response.writeHead(302, { location }).end();
    });
    const fixture = await DownloadFixture.create(t);
    await assert.rejects(
      fixture.download(`${server.url}/image.raw`),
      withCode('artifact-refused', /is a (link-local|private) address/),
    );
  });
}

/** Timeout in milliseconds: short for a test, long enough for a busy machine. */
const STALL = 500;

/** Writes single bytes until the connection ends. */
function drip(write: (text: string) => void, ended: (listener: () => void) => void): void {
  const timer = setInterval(() => write('x'), STALL / 10);
  ended(() => clearInterval(timer));
}

test('a response body that arrives byte by byte times out', async (t) => {
  const server = await oddServer(t, (_request, response) => {
    response.writeHead(200, { 'content-length': BLOCK });
    drip(
      (text) => response.write(text),
      (listener) => response.on('close', listener),
    );
  });
  const fixture = await DownloadFixture.create(t);
  await assert.rejects(
    fixture.download(`${server.url}/image.raw`, {}, { stall: STALL }),
    withCode('download-failed', /only \d+ bytes arrived in 0\.\d s; all 3 attempts/),
  );
});

test('header fields that arrive byte by byte time out', async (t) => {
  const server = await oddServer(t, (_request, response) => {
    const { socket } = response;
    socket?.write('HTTP/1.1 200 OK\r\nX-Field: ');
    drip(
      (text) => socket?.write(text),
      (listener) => socket?.on('close', listener),
    );
  });
  const fixture = await DownloadFixture.create(t);
  await assert.rejects(
    fixture.download(`${server.url}/image.raw`, {}, { stall: STALL }),
    withCode('download-failed', /no response arrived within 0\.5 s/),
  );
});
