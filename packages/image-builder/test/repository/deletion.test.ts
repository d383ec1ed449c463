import assert from 'node:assert/strict';
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { temporaryDirectory } from '../../../../test/fixtures/temporary-directory.ts';
import {
  belongsTo,
  DELETE_MEMORY,
  emptyTrash,
  PendingDeletes,
  withdraw,
} from '../../src/repository/deletion.ts';
import { Layout, WORKSPACE } from '../../src/repository/layout.ts';

async function layoutWith(t: TestContext, names: readonly string[]): Promise<Layout> {
  const layout = new Layout(await temporaryDirectory(t));
  await layout.create();
  for (const name of names) await writeFile(join(layout.root, name), 'content');
  return layout;
}

async function imageFiles(layout: Layout): Promise<string[]> {
  return (await readdir(layout.root)).filter((name) => name !== WORKSPACE);
}

const OWN = ['a.qcow2', 'a.raw', 'a.squash', 'a.qcow2.md5', 'a.raw.sha256', 'a.md5', 'a.d', 'a.qcow2-new'];
const FOREIGN = ['a', 'ab.qcow2', 'a.b.qcow2', 'a.qcow2.bak', 'a.txt', '.a.qcow2', 'a-1.qcow2'];

test('an image’s files are recognized by its id and their suffix', () => {
  for (const name of OWN) assert.ok(belongsTo('a', name), name);
  for (const name of FOREIGN) assert.ok(!belongsTo('a', name), name);
});

test('withdrawing an image moves all its files, and no others', async (t) => {
  const layout = await layoutWith(t, [...OWN.filter((name) => name !== 'a.d'), ...FOREIGN]);
  await mkdir(join(layout.root, 'a.d', 'dib-manifests'), { recursive: true });
  await writeFile(layout.manifest('a'), '{}');
  await writeFile(layout.manifest('a.b'), '{}');
  await withdraw(layout, 'a');
  assert.deepEqual((await imageFiles(layout)).toSorted(), FOREIGN.toSorted());
  assert.deepEqual(await readdir(layout.manifests), ['a.b.json']);
  assert.deepEqual(await readdir(layout.deleted), ['a']);
  assert.deepEqual(await readdir(layout.deletes), []);
  await emptyTrash(layout, 'a');
  assert.deepEqual(await readdir(layout.trash), []);
});

test('files left in the trash do not disturb a deletion', async (t) => {
  const layout = await layoutWith(t, []);
  for (const directory of [join(layout.trash, 'a.d', 'old'), join(layout.root, 'a.d', 'new')]) {
    await mkdir(directory, { recursive: true });
  }
  await withdraw(layout, 'a');
  assert.deepEqual(await readdir(join(layout.trash, 'a.d')), ['new']);
});

test('a failed deletion is not completed later', async (t) => {
  const layout = await layoutWith(t, ['a.raw']);
  await rm(layout.trash, { recursive: true });
  await assert.rejects(withdraw(layout, 'a'), { code: 'ENOENT' });
  assert.deepEqual(await readdir(layout.deletes), []);
  assert.deepEqual(await imageFiles(layout), ['a.raw']);
});

async function setUp(t: TestContext) {
  const layout = new Layout(await temporaryDirectory(t));
  await layout.create();
  await writeFile(join(layout.deleted, 'a'), '');
  const forgotten: string[] = [];
  const pending = new PendingDeletes(layout, (imageId) => forgotten.push(imageId));
  t.after(() => pending.close());
  return { layout, pending, forgotten };
}

test('an earlier process’s pending deletions are loaded, and forgotten once', async (t) => {
  const { layout, pending, forgotten } = await setUp(t);
  await pending.load();
  assert.deepEqual([...pending.ids], ['a']);
  await pending.forget('a');
  await pending.forget('a');
  await pending.forget('unknown');
  assert.deepEqual(forgotten, ['a']);
  assert.ok(!pending.ids.has('a'));
  assert.deepEqual(await readdir(layout.deleted), []);
});

test('a pending deletion is forgotten after ten minutes', async (t) => {
  const { pending, forgotten } = await setUp(t);
  t.mock.timers.enable({ apis: ['setTimeout'] });
  pending.add('b');
  t.mock.timers.tick(DELETE_MEMORY - 1);
  assert.ok(pending.ids.has('b'));
  t.mock.timers.tick(1);
  assert.deepEqual(forgotten, ['b']);
});
