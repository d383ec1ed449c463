import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { createServer, type TLSSocket } from 'node:tls';
import { selfSigned } from '../../../../test/fixtures/self-signed.ts';
import { openSocket } from '../../src/connection/open-socket.ts';
import type { ServerAddress } from '../../src/connection/server-address.ts';

const LIMIT = { timeout: 30_000 };

interface Certificate {
  readonly cert: string;
  readonly key: string;
}

/** A TLS server that accepts clients with one of the certificates. */
async function secureServer(
  t: TestContext,
  clients: readonly Certificate[] = [],
): Promise<{ address: Omit<ServerAddress, 'tls'>; ca: string; accept: () => Promise<TLSSocket> }> {
  const own = await selfSigned();
  const server = createServer({
    ...own,
    ca: clients.map(({ cert }) => cert),
    requestCert: clients.length > 0,
  });
  const sockets: TLSSocket[] = [];
  server.on('secureConnection', (socket) => sockets.push(socket.on('error', () => {})));
  server.on('tlsClientError', () => {});
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return {
    address: { host: '127.0.0.1', port: (server.address() as AddressInfo).port },
    ca: own.cert,
    accept: async () => {
      if (sockets.length === 0) await once(server, 'secureConnection');
      return sockets.shift() as TLSSocket;
    },
  };
}

test('connecting to a server with an unknown certificate fails with connect-failed', async (t) => {
  const { address, ca } = await secureServer(t);
  const other = await selfSigned();
  await assert.rejects(openSocket({ ...address, tls: { ca: other.cert } }, LIMIT), {
    code: 'connect-failed',
  });
  await assert.rejects(openSocket({ ...address, tls: {} }, LIMIT), { code: 'connect-failed' });
  (await openSocket({ ...address, tls: { ca } }, LIMIT)).destroy();
});

test('connecting to a server with a certificate for another name fails with connect-failed', async (t) => {
  const { address, ca } = await secureServer(t);
  await assert.rejects(openSocket({ ...address, tls: { ca, servername: 'jobs.example.org' } }, LIMIT), {
    code: 'connect-failed',
    message: /jobs\.example\.org/,
  });
});

test('a function for TLS options is called for the next connection and leaves the current one unchanged', async (t) => {
  const [first, renewed] = await Promise.all([selfSigned(), selfSigned()]);
  const { address, ca, accept } = await secureServer(t, [first, renewed]);
  let certificate = first;
  const renewing = { ...address, tls: () => ({ ...certificate, ca }) };

  const before = await openSocket(renewing, LIMIT);
  const present = await accept();
  certificate = renewed;
  const after = await openSocket(renewing, LIMIT);
  const next = await accept();

  assert.equal(present.getPeerX509Certificate()?.toString(), first.cert);
  assert.equal(next.getPeerX509Certificate()?.toString(), renewed.cert);
  const heard = once(before, 'data');
  present.write('still there');
  assert.equal(String(await heard), 'still there');
  before.destroy();
  after.destroy();
});

test('a function for TLS options that throws fails the connection with its error', async (t) => {
  const { address } = await secureServer(t);
  const unreadable = {
    ...address,
    tls: () => {
      throw new Error('no such file');
    },
  };
  await assert.rejects(openSocket(unreadable, LIMIT), { code: 'connect-failed', message: /no such file/ });
});

test('a function for TLS options that returns undefined does not cause plain text', async (t) => {
  const { address } = await secureServer(t);
  const nothing = { ...address, tls: () => undefined as never };
  await assert.rejects(openSocket(nothing, LIMIT), { code: 'connect-failed', message: /self.signed/ });
});
