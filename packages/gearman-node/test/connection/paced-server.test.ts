import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PacedServer } from '../../src/connection/paced-server.ts';

const address = { host: '127.0.0.1' };

test('pauses before reconnecting grow until the server responds to a request', () => {
  const server = new PacedServer(address, { minDelay: 1000, maxDelay: 100_000 });
  assert.equal(server.pause, 0);
  for (let times = 0; times < 5; times += 1) server.lost();
  assert.ok(server.pause > 4000, `${server.pause}`);
  server.replied();
  server.lost();
  assert.ok(server.pause <= 1000, `${server.pause}`);
});

test('pauses before reconnecting double up to the maximum, each reduced at random by up to a half', (t) => {
  t.mock.method(performance, 'now', () => 0);
  for (const [random, pauses] of [
    [0, [100, 200, 400, 800, 1000, 1000]],
    [1, [50, 100, 200, 400, 500, 500]],
  ] as const) {
    t.mock.method(Math, 'random', () => random);
    const server = new PacedServer(address, { minDelay: 100, maxDelay: 1000 });
    const measured = pauses.map(() => {
      server.lost();
      return server.pause;
    });
    assert.deepEqual(measured, pauses);
    for (let failures = 0; failures < 5000; failures += 1) server.lost();
    assert.equal(server.pause, pauses.at(-1));
  }
});

test('a pause before reconnecting ends after its time or with a signal', async () => {
  const short = new PacedServer(address, { minDelay: 1, maxDelay: 1 });
  short.lost();
  await short.ready(new AbortController().signal);
  assert.ok(short.pause < 1, `${short.pause}`); // a timer may fire up to a millisecond early

  const long = new PacedServer(address, { minDelay: 3_600_000, maxDelay: 3_600_000 });
  long.lost();
  await long.ready(AbortSignal.timeout(1));
  assert.ok(long.pause > 0);
});

test('a server’s reconnection delays are rejected if they are invalid', () => {
  for (const options of [{ minDelay: 0 }, { maxDelay: Number.NaN }, { minDelay: 200, maxDelay: 100 }]) {
    assert.throws(() => new PacedServer(address, options), { code: 'invalid-argument' });
  }
});
