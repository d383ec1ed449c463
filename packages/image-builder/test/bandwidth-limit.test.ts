import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BandwidthLimit } from '../src/bandwidth-limit.ts';

const { signal } = new AbortController();

test('all that share a limit stay below it together', async () => {
  const limit = new BandwidthLimit(100_000);
  const begun = performance.now();
  const stream = async (): Promise<void> => {
    for (let piece = 0; piece < 5; piece += 1) await limit.take(1000, signal);
  };
  await Promise.all([stream(), stream(), stream()]);
  // The last of 15 kB may go when 14 kB are paid for.
  const passed = performance.now() - begun;
  assert.ok(passed >= 138, `after ${passed} ms`);
});

test('time without traffic is not saved up', async (t) => {
  let now = 0;
  t.mock.method(performance, 'now', () => now);
  const limit = new BandwidthLimit(100_000);
  await limit.take(5000, signal);
  now = 60_000;
  await limit.take(5000, signal);
  const begun = process.hrtime.bigint();
  await limit.take(5000, signal);
  const passed = Number(process.hrtime.bigint() - begun) / 1e6;
  assert.ok(passed >= 48, `after ${passed} ms`);
});

test('an abort ends the wait', async () => {
  const limit = new BandwidthLimit(1);
  await limit.take(1000, signal);
  const abort = new AbortController();
  const waiting = limit.take(1, abort.signal);
  const reason = new Error('nobody wants it');
  abort.abort(reason);
  await assert.rejects(waiting, { name: 'AbortError', cause: reason });
});
