// Only in test:all: it tests a soak.
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { openStateStore } from '@nodepool-builder/image-manager';
import { build, upload } from '../../packages/image-manager/test/store/records.ts';
import { undoAfter } from '../fixtures/undo-after.ts';
import { reportReady } from './report-ready.ts';

test('a manager reports the ready uploads that a killed one wrote and did not report', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'report-ready-'));
  undoAfter(t, () => rm(directory, { recursive: true, force: true }));
  const store = await openStateStore(join(directory, 'state.sqlite'));
  undoAfter(t, () => store.close());
  const image = build(store.owner, 1, { state: 'ready' });
  const killed = await store.lead();
  await killed.write({
    builds: [image],
    uploads: [
      upload(store.owner, 2, image, { state: 'ready', externalId: 'one' }),
      upload(store.owner, 3, image),
    ],
  });
  await killed.release();

  const reported: (readonly string[])[] = [];
  reportReady(store, async (externalIds) => {
    reported.push(externalIds);
  });
  const leadership = await store.lead();
  assert.deepEqual(reported, [['one']]);
  await leadership.write({ uploads: [upload(store.owner, 3, image, { state: 'ready', externalId: 'two' })] });
  assert.deepEqual(reported, [['one'], ['two']]);
});
