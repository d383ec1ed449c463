import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { test } from 'node:test';
import { BandwidthLimit } from '../../../src/openstack/upload/bandwidth-limit.ts';
import { meteredBody } from '../../../src/openstack/upload/metered-body.ts';

const DATA = randomBytes(300_000);
const { signal } = new AbortController();

test('every byte passes, and is counted', async () => {
  let counted = 0;
  const onBytes = ({ length }: Buffer): void => {
    counted += length;
  };
  const body = meteredBody(Readable.from([DATA, DATA]), { onBytes, limit: undefined, signal });
  assert.deepEqual(await buffer(body), Buffer.concat([DATA, DATA]));
  assert.equal(counted, 600_000);
});

test('a limit spreads a large piece over its time', async () => {
  const limit = new BandwidthLimit(2_000_000);
  const begun = performance.now();
  const body = meteredBody(Readable.from([DATA]), { onBytes: () => {}, limit, signal });
  assert.deepEqual(await buffer(body), DATA);
  // All but the last 64 KiB have to be paid for.
  const passed = performance.now() - begun;
  assert.ok(passed >= 115, `after ${passed} ms`);
});

test('an error of the source ends it', async () => {
  const reason = new Error('disk broke');
  const source = new Readable({ read: () => {} });
  const body = meteredBody(source, { onBytes: () => {}, limit: undefined, signal });
  source.destroy(reason);
  await assert.rejects(buffer(body), reason);
});

test('its end ends the source', async () => {
  const source = new Readable({ read: () => {} });
  const body = meteredBody(source, { onBytes: () => {}, limit: undefined, signal });
  body.on('error', () => {});
  body.destroy();
  await once(source, 'close', { signal: AbortSignal.timeout(10_000) }).catch(() => {});
  assert.ok(source.destroyed);
});
