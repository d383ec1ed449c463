import assert from 'node:assert/strict';
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { Layout } from '../../src/repository/layout.ts';
import { DELETE_MEMORY, PendingDeletes } from '../../src/repository/pending-deletes.ts';
import { temporaryDirectory } from '../temporary-directory.ts';

async function setUp(t: TestContext) {
  const layout = new Layout(await temporaryDirectory(t));
  await layout.create();
  await writeFile(join(layout.deleted, 'a'), '');
  const forgotten: string[] = [];
  const pending = new PendingDeletes(layout, (imageId) => forgotten.push(imageId));
  t.after(() => pending.close());
  return { layout, pending, forgotten };
}

test('those of an earlier process are taken over, and forgotten once', async (t) => {
  const { layout, pending, forgotten } = await setUp(t);
  await pending.load();
  assert.deepEqual([...pending.ids], ['a']);
  await pending.forget('a');
  await pending.forget('a');
  await pending.forget('unknown');
  assert.deepEqual(forgotten, ['a']);
  assert.ok(!pending.has('a'));
  assert.deepEqual(await readdir(layout.deleted), []);
});

test('after ten minutes they are forgotten', async (t) => {
  const { pending, forgotten } = await setUp(t);
  t.mock.timers.enable({ apis: ['setTimeout'] });
  pending.add('b');
  t.mock.timers.tick(DELETE_MEMORY - 1);
  assert.ok(pending.has('b'));
  t.mock.timers.tick(1);
  assert.deepEqual(forgotten, ['b']);
});
