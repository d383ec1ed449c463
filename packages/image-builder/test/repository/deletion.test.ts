import assert from 'node:assert/strict';
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import {
  beganDeletes,
  belongsTo,
  emptyTrash,
  endedDeletes,
  forget,
  withdraw,
} from '../../src/repository/deletion.ts';
import { Layout, WORKSPACE } from '../../src/repository/layout.ts';
import { temporaryDirectory } from '../temporary-directory.ts';

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

test('an image’s files are known by the id and by what follows it', () => {
  for (const name of OWN) assert.ok(belongsTo('a', name), name);
  for (const name of FOREIGN) assert.ok(!belongsTo('a', name), name);
});

test('a withdrawn image is gone with all its files, and no other file is', async (t) => {
  const layout = await layoutWith(t, [...OWN.filter((name) => name !== 'a.d'), ...FOREIGN]);
  await mkdir(join(layout.root, 'a.d', 'dib-manifests'), { recursive: true });
  await writeFile(layout.manifest('a'), '{}');
  await writeFile(layout.manifest('a.b'), '{}');
  await withdraw(layout, 'a');
  assert.deepEqual((await imageFiles(layout)).toSorted(), FOREIGN.toSorted());
  assert.deepEqual(await readdir(layout.manifests), ['a.b.json']);
  assert.deepEqual(await endedDeletes(layout), ['a']);
  assert.deepEqual(await beganDeletes(layout), []);
  await emptyTrash(layout, 'a');
  assert.deepEqual(await readdir(layout.trash), []);
  await forget(layout, 'a');
  assert.deepEqual(await endedDeletes(layout), []);
});

test('what an earlier delete left in the trash is in nobody’s way', async (t) => {
  const layout = await layoutWith(t, []);
  for (const directory of [join(layout.trash, 'a.d', 'old'), join(layout.root, 'a.d', 'new')]) {
    await mkdir(directory, { recursive: true });
  }
  await withdraw(layout, 'a');
  assert.deepEqual(await readdir(join(layout.trash, 'a.d')), ['new']);
});

test('a delete that fails has not begun', async (t) => {
  const layout = await layoutWith(t, ['a.raw']);
  await rm(layout.trash, { recursive: true });
  await assert.rejects(withdraw(layout, 'a'), { code: 'ENOENT' });
  assert.deepEqual(await beganDeletes(layout), []);
  assert.deepEqual(await imageFiles(layout), ['a.raw']);
});
