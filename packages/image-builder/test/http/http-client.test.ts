import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { describe, test } from 'node:test';
import { undoAfter } from '../../../../test/fixtures/undo-after.ts';
import { HttpClient, NetworkError, staysWithHost } from '../../src/http/http-client.ts';

describe('redirects', () => {
  const cases: readonly (readonly [from: string, location: string, stays: boolean])[] = [
    ['https://zuul/api/info', '/zuul/api/info', true],
    ['https://zuul/api/info', 'https://zuul:443/api/info', true],
    ['http://zuul/api/info', 'https://zuul/api/info', true],
    ['https://zuul/api/info', 'http://zuul/api/info', false],
    ['http://zuul:9000/api/info', 'https://zuul/api/info', false],
    ['http://zuul/api/info', 'https://zuul:8443/api/info', false],
    ['https://zuul/api/info', 'https://login/', false],
    ['https://zuul/api/info', '//login/', false],
    ['https://zuul/api/info', 'https://zuul.example.com/', false],
    ['https://zuul/api/info', 'http://[', false],
  ];
  for (const [from, location, stays] of cases) {
    test(`a redirect from ${from} to ${location} ${stays ? 'stays with' : 'leaves'} the host`, () =>
      assert.equal(staysWithHost(from, location), stays));
  }
});

/** First bytes that servers send after accepting a connection. */
const REPLIES = {
  http: 'HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n',
  ssh: 'SSH-2.0-OpenSSH_9.2p1\r\n',
  alert: '\x15\x03\x01\x00\x02\x02\x46', // TLS alert 70, protocol version
};

for (const [scheme, reply, reason] of [
  ['https', 'http', /^the server does not speak TLS there \(.+\); correct https in the URL, or its port$/],
  ['https', 'ssh', /^the server does not speak TLS there/],
  ['https', 'alert', /^the TLS handshake failed: tlsv1 alert protocol version$/],
  ['http', 'ssh', /^the server does not speak HTTP there \(.+\); correct http in the URL, or its port$/],
  ['http', 'alert', /^the server does not speak HTTP there/],
] as const) {
  test(`a request by ${scheme} to a server that replies with ${reply} fails with one line that says so`, async (t) => {
    const server = createServer((socket) => {
      socket.on('error', () => {});
      socket.once('data', () => socket.end(Buffer.from(REPLIES[reply], 'latin1')));
    });
    undoAfter(t, () => void server.close());
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const url = new URL(`${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}/v3`);
    await assert.rejects(new HttpClient({ timeout: 10 }).send({ url }), (error: unknown) => {
      assert.ok(error instanceof NetworkError);
      assert.match(error.message, reason);
      assert.doesNotMatch(error.message, /\n/);
      return true;
    });
  });
}

test('a request to a server that does not respond fails with the server’s name and the time limit', async (t) => {
  const server = createServer((socket) => void socket.on('error', () => {}).resume());
  undoAfter(t, () => void server.close());
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const request = new HttpClient({ timeout: 0.05 }).send({ url: new URL(`http://127.0.0.1:${port}/v3`) });
  await assert.rejects(request, {
    kind: 'no-response',
    message: `127.0.0.1:${port} sent no complete response within 0.05 s`,
  });
});
