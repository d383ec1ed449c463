import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { BandwidthLimit, metered } from '../src/bandwidth-limit.ts';

const { signal } = new AbortController();

test('streams that share a bandwidth limit stay below it together', async () => {
  const limit = new BandwidthLimit(100_000);
  const begun = performance.now();
  const stream = async (): Promise<void> => {
    for (let piece = 0; piece < 5; piece += 1) await limit.take(1000, signal);
  };
  await Promise.all([stream(), stream(), stream()]);
  // The last of 15 kB may be sent when 14 kB are paid for.
  const passed = performance.now() - begun;
  assert.ok(passed >= 138, `after ${passed} ms`);
});

test('a bandwidth limit does not save up time without traffic, neither at the start nor later', async (t) => {
  let now = 0;
  t.mock.method(performance, 'now', () => now);
  const limit = new BandwidthLimit(100_000);
  for (now of [50, 60_000]) {
    await limit.take(5000, signal);
    const begun = process.hrtime.bigint();
    await limit.take(5000, signal);
    const passed = Number(process.hrtime.bigint() - begun) / 1e6;
    assert.ok(passed >= 48, `after ${passed} ms`);
  }
});

test('a rate-limited stream that wakes late makes up for it', async (t) => {
  let now = 0;
  t.mock.method(performance, 'now', () => now);
  const limit = new BandwidthLimit(1_000_000);
  // Each piece takes a millisecond, and the next one comes half a millisecond late.
  for (let piece = 0; piece < 10; piece += 1, now += 1.5) await limit.take(1000, signal);
  // The last one takes an hour, because the wait for the next one must exceed a turn on a slow machine.
  const sizes = [1000, 1000, 1000, 1000, 1000, 3_600_000_000];
  const immediate = Promise.all(sizes.map((size) => limit.take(size, signal)));
  const waiting = Symbol('waiting');
  assert.notEqual(await Promise.race([immediate, nextTurn(waiting)]), waiting);
  const abort = new AbortController();
  const next = limit.take(1000, abort.signal);
  assert.equal(await Promise.race([next, nextTurn(waiting)]), waiting);
  abort.abort();
  await assert.rejects(next, { name: 'AbortError' });
});

test('an abort ends the wait for bandwidth', async () => {
  const limit = new BandwidthLimit(1);
  await limit.take(1000, signal);
  const abort = new AbortController();
  const waiting = limit.take(1, abort.signal);
  const reason = new Error('nothing needs it');
  abort.abort(reason);
  await assert.rejects(waiting, { name: 'AbortError', cause: reason });
});

const DATA = randomBytes(300_000);
async function* twice(): AsyncGenerator<Buffer> {
  yield DATA;
  yield DATA;
}

test('a metered stream passes and counts every byte', async () => {
  let counted = 0;
  const onBytes = (bytes: number): void => {
    counted += bytes;
  };
  const pieces = metered(twice(), { onBytes, limit: undefined, signal });
  assert.deepEqual(await buffer(pieces), Buffer.concat([DATA, DATA]));
  assert.equal(counted, 600_000);
});

test('a bandwidth limit spreads large pieces over their time', async () => {
  const limit = new BandwidthLimit(4_000_000);
  const begun = performance.now();
  const pieces = metered(twice(), { onBytes: () => {}, limit, signal });
  assert.deepEqual(await buffer(pieces), Buffer.concat([DATA, DATA]));
  // All but the last 64 KiB have to be paid for.
  const passed = performance.now() - begun;
  assert.ok(passed >= 130, `after ${passed} ms`);
});

test('ending the iteration of a metered stream ends its source', async () => {
  let ended = false;
  async function* source(): AsyncGenerator<Buffer> {
    try {
      for (;;) yield DATA;
    } finally {
      ended = true;
    }
  }
  const pieces = metered(source(), { onBytes: () => {}, limit: undefined, signal });
  await pieces.next();
  await pieces.return();
  assert.ok(ended);
});
