import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import { test } from 'node:test';
import { BandwidthLimit } from '../src/bandwidth-limit.ts';
import { metered } from '../src/metered.ts';

const DATA = randomBytes(300_000);
const { signal } = new AbortController();

async function* twice(): AsyncGenerator<Buffer> {
  yield DATA;
  yield DATA;
}

test('every byte passes, and is counted', async () => {
  let counted = 0;
  const onBytes = (bytes: number): void => {
    counted += bytes;
  };
  const pieces = metered(twice(), { onBytes, limit: undefined, signal });
  assert.deepEqual(await buffer(pieces), Buffer.concat([DATA, DATA]));
  assert.equal(counted, 600_000);
});

test('a limit spreads large pieces over their time', async () => {
  const limit = new BandwidthLimit(4_000_000);
  const begun = performance.now();
  const pieces = metered(twice(), { onBytes: () => {}, limit, signal });
  assert.deepEqual(await buffer(pieces), Buffer.concat([DATA, DATA]));
  // All but the last 64 KiB have to be paid for.
  const passed = performance.now() - begun;
  assert.ok(passed >= 130, `after ${passed} ms`);
});

test('its end ends the source', async () => {
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
