// Only in test:all: it kills a daemon for a minute.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { soakDisk } from './soak-disk.ts';

// `npm run soak:disk` runs for ten minutes.
test('a site ends with exactly the images on record after kills, full and frozen disks, and clock changes', async (t) => {
  const plan = { duration: 20_000, settlingTime: 480_000 };
  const { faults, builds, looks, ...counts } = await soakDisk(plan, () => {}, t.signal);
  assert.deepEqual(faults, []);
  assert.ok(builds > 0 && looks > 0, JSON.stringify({ builds, looks, ...counts }));
  assert.ok(counts.kills > 0 && counts.fills + counts.freezes > 0, JSON.stringify(counts));
});
