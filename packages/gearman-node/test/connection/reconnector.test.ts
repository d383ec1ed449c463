import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { test } from 'node:test';
import { Reconnector } from '../../src/connection/reconnector.ts';
import type { ConnectionError } from '../../src/errors.ts';
import { ScriptedServer } from '../fixtures/scripted-server.ts';

const FAST = { minDelay: 1, maxDelay: 4, timeout: 60_000 };

/** Serves a socket until it closes. */
async function untilClosed(socket: Socket, onReply?: () => void): Promise<void> {
  onReply?.();
  socket.resume();
  socket.on('error', () => {});
  await once(socket, 'close');
}

test('the reconnector connects again whenever the connection is lost', async () => {
  const server = await ScriptedServer.listen();
  const reconnector = new Reconnector(server.address, {
    ...FAST,
    serve: untilClosed,
    onFailure: assert.fail,
  });
  for (let times = 0; times < 5; times += 1) await (await server.accept()).close();
  const last = await server.accept();
  const stopped = reconnector.stop();
  await last.close();
  await stopped;
  await server.close();
});

test('the reconnector reports each failure and retries until the server is reachable', async () => {
  const server = await ScriptedServer.listen();
  const { address } = server;
  await server.close();
  const failures: ConnectionError[] = [];
  const threeFailures = Promise.withResolvers<void>();
  const reconnector = new Reconnector(address, {
    ...FAST,
    serve: untilClosed,
    onFailure: (error) => {
      failures.push(error);
      if (failures.length === 3) threeFailures.resolve();
    },
  });
  await threeFailures.promise;
  const again = await ScriptedServer.listen(address.port);
  const peer = await again.accept();
  assert.ok(failures.every((error) => error.code === 'connect-failed' && error.retriable));
  await peer.close();
  await reconnector.stop();
  await again.close();
});

test('stopping the reconnector ends an attempt or a pause, and it opens no further connection', async () => {
  const server = await ScriptedServer.listen();
  const { address } = server;
  await server.close();
  const failed = Promise.withResolvers<void>();
  const reconnector = new Reconnector(address, {
    minDelay: 3_600_000,
    maxDelay: 3_600_000,
    timeout: 60_000,
    serve: () => Promise.reject(new Error('nothing to serve')),
    onFailure: () => failed.resolve(),
  });
  await failed.promise;
  await reconnector.stop();
});

test('the reconnector retries at growing intervals if a server accepts and closes connections', async (t) => {
  t.mock.method(Math, 'random', () => 0); // without jitter
  const server = await ScriptedServer.listen();
  const reconnector = new Reconnector(server.address, {
    minDelay: 10,
    maxDelay: 80,
    timeout: 60_000,
    serve: (socket) => untilClosed(socket),
    onFailure: assert.fail,
  });
  const start = performance.now();
  for (let times = 0; times < 6; times += 1) {
    const peer = await server.accept();
    await new Promise((resolve) => setTimeout(resolve, 0));
    await peer.close();
  }
  // 10, 20, 40, 80 and 80 ms; a timer may fire up to two milliseconds early.
  assert.ok(performance.now() - start >= 220, `${performance.now() - start} ms`);
  await reconnector.stop();
  await server.close();
});
