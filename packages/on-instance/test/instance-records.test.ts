import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { undoAfter } from '../../../test/fixtures/undo-after.ts';
import { InstanceRecords } from '../src/instance-records.ts';

test('a record or key that a crash left half-written is listed, and removed with its record', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'ledger-'));
  undoAfter(t, () => rm(directory, { recursive: true }));
  const left = ['a.json.new', 'b.key', 'c.key.new', 'd.json', 'd.json.new', 'd.key', 'foreign.txt'];
  for (const name of left) await writeFile(join(directory, name), '{}');
  const ledger = new InstanceRecords({ recordDirectory: () => directory });
  const imageIds = await ledger.imageIds();
  assert.deepEqual(imageIds.toSorted(), ['a', 'b', 'c', 'd']);
  for (const imageId of imageIds) await ledger.tryClaim(imageId)?.remove();
  assert.deepEqual(await readdir(directory), ['foreign.txt']);
});
