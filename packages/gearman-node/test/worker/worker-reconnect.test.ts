import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { Worker } from '../../src/worker/worker.ts';
import type { WorkerOptions } from '../../src/worker/worker-options.ts';
import { ScriptedServer } from '../fixtures/scripted-server.ts';

const FAST = { minDelay: 1, maxDelay: 4 };

const ignore = (): void => {};

/** A server, a worker without functions, and the worker's warnings. */
async function connecting(t: TestContext, reconnect: WorkerOptions['reconnect'], isAway = false) {
  const server = await ScriptedServer.listen();
  const { address } = server;
  if (isAway) await server.close();
  const warnings: string[] = [];
  const logger = { debug: ignore, info: ignore, warn: (text: string) => warnings.push(text), error: ignore };
  const worker = new Worker({ servers: [address], reconnect, logger });
  t.after(() => worker.close());
  return { server, address, worker, warnings };
}

test('a worker connects again whenever the connection is lost', async (t) => {
  const { server, worker } = await connecting(t, FAST);
  for (let times = 0; times < 5; times += 1) await (await server.accept()).close();
  const last = await server.accept();
  const closed = worker.close();
  await last.close();
  await closed;
  await server.close();
});

test('a worker logs each failure to connect and retries until the server is reachable', async (t) => {
  const { address, warnings } = await connecting(t, FAST, true);
  while (warnings.length < 3) await new Promise((resolve) => setTimeout(resolve, 1));
  const again = await ScriptedServer.listen(address.port);
  await again.accept();
  assert.ok(warnings.every((text) => text.startsWith(`cannot connect to the job server 127.0.0.1:`)));
  await again.close();
});

test('closing a worker ends the pause before the next attempt to connect', async (t) => {
  const { worker, warnings } = await connecting(t, { minDelay: 3_600_000, maxDelay: 3_600_000 }, true);
  while (warnings.length === 0) await new Promise((resolve) => setTimeout(resolve, 1));
  await worker.close();
});

test('a worker retries at growing intervals if a server accepts and closes connections', async (t) => {
  t.mock.method(Math, 'random', () => 0); // without jitter
  const { server, worker } = await connecting(t, { minDelay: 10, maxDelay: 80 });
  const start = performance.now();
  for (let times = 0; times < 6; times += 1) {
    const peer = await server.accept();
    await new Promise((resolve) => setTimeout(resolve, 0));
    await peer.close();
  }
  // 10, 20, 40, 80 and 80 ms; a timer may fire up to two milliseconds early.
  assert.ok(performance.now() - start >= 220, `${performance.now() - start} ms`);
  await worker.close();
  await server.close();
});
