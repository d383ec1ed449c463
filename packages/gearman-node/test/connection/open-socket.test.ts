import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { test } from 'node:test';
import { openSocket } from '../../src/connection/open-socket.ts';
import { ConnectionError } from '../../src/errors.ts';
import { ScriptedServer } from '../fixtures/scripted-server.ts';

/** A server that accepts connections and never sends data. */
async function muteServer(): Promise<Server & { port: number }> {
  const server = createServer((socket) => socket.on('error', () => {}).resume()).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return Object.assign(server, { port: (server.address() as AddressInfo).port });
}

const failed = (pattern: RegExp) => (error: unknown) =>
  error instanceof ConnectionError && error.code === 'connect-failed' && pattern.test(error.message);

test('a socket connects to the address of a listening server', async () => {
  const server = await ScriptedServer.listen();
  const socket = await openSocket(server.address, { timeout: 60_000 });
  await server.accept();
  assert.equal(socket.remotePort, server.port);
  socket.destroy();
  await server.close();
});

test('connecting to a closed port fails with an error that names the port', async () => {
  const server = await ScriptedServer.listen();
  const { address } = server;
  await server.close();
  await assert.rejects(
    openSocket(address, { timeout: 60_000 }),
    failed(new RegExp(`127\\.0\\.0\\.1:${address.port}: .*ECONNREFUSED`)),
  );
});

test('connecting to an unknown host fails with connect-failed', async () => {
  await assert.rejects(
    openSocket({ host: 'no-such-host.invalid' }, { timeout: 60_000 }),
    failed(/no-such-host\.invalid:4730/),
  );
});

test('a TLS handshake without a response times out', async () => {
  const server = await muteServer();
  const address = { host: '127.0.0.1', port: server.port, tls: {} };
  await assert.rejects(openSocket(address, { timeout: 50 }), failed(/no response within 50 ms/));
  server.close();
});

test('connecting with TLS to a server without it fails with connect-failed', async () => {
  const server = createServer((socket) => socket.end('ERR no TLS here\r\n')).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  await assert.rejects(openSocket({ host: '127.0.0.1', port, tls: {} }, { timeout: 60_000 }), failed(/./));
  server.close();
});

test('an aborted signal ends the attempt to connect and prevents the next one', async () => {
  const server = await muteServer();
  const address = { host: '127.0.0.1', port: server.port, tls: {} };
  const controller = new AbortController();
  const options = { timeout: 60_000, signal: controller.signal };
  const opening = openSocket(address, options);
  const [socket] = (await once(server, 'connection')) as [Socket];
  const closed = once(socket, 'close');
  controller.abort(new Error('enough'));
  await assert.rejects(opening, failed(/enough/));
  await closed;
  await assert.rejects(openSocket(address, options), failed(/enough/));
  server.close();
});

test('an attempt that fails at once after it was aborted ends with the reason of the abort', async () => {
  const controller = new AbortController();
  // The system rejects this address before it sends anything.
  const options = { timeout: 60_000, signal: controller.signal };
  const rejected = Promise.withResolvers<void>();
  setImmediate(() => {
    const opening = openSocket({ host: '255.255.255.255' }, options);
    controller.abort(new Error('enough'));
    rejected.resolve(assert.rejects(opening, failed(/enough/)));
  });
  await rejected.promise;
});

test('chunks received on one socket do not change while other sockets read', async () => {
  const server = await ScriptedServer.listen();
  const received: Buffer[] = [];
  for (const text of ['first', 'second', 'third']) {
    const socket = await openSocket(server.address, { timeout: 60_000 });
    const peer = await server.accept();
    peer.sendBytes(text);
    const [chunk] = (await once(socket, 'data')) as [Buffer];
    received.push(chunk);
    socket.destroy();
  }
  assert.deepEqual(received.map(String), ['first', 'second', 'third']);
  await server.close();
});

test('bytes received before a socket’s first listener are kept, and precede later ones', async () => {
  const server = await ScriptedServer.listen();
  const socket = await openSocket(server.address, { timeout: 60_000 });
  const peer = await server.accept();
  peer.sendBytes('early ');
  while (socket.readableLength === 0) await new Promise(setImmediate);
  let text = '';
  socket.on('data', (chunk: Buffer) => (text += chunk.toString()));
  peer.sendBytes('late');
  peer.socket.end();
  await once(socket, 'close');
  assert.equal(text, 'early late');
  await server.close();
});

test('a paused socket applies back-pressure to its peer and loses nothing', async () => {
  const server = await ScriptedServer.listen();
  const socket = await openSocket(server.address, { timeout: 60_000 });
  const peer = await server.accept();
  let length = 0;
  socket.on('data', (chunk: Buffer) => {
    length += chunk.length;
  });
  socket.pause();
  const size = 32 * 1024 * 1024;
  peer.sendBytes(Buffer.alloc(size));
  await new Promise(setImmediate);
  assert.ok(peer.socket.writableLength > 0);
  assert.equal(length, 0);
  socket.resume();
  peer.socket.end();
  await once(socket, 'close');
  assert.equal(length, size);
  await server.close();
});
