import assert from 'node:assert/strict';
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryDirectory } from '../../../../test/fixtures/temporary-directory.ts';
import { Layout, parseImageFileName, WORKSPACE } from '../../src/repository/layout.ts';

test('image files are in images-dir itself', () => {
  const layout = new Layout('/images');
  assert.equal(layout.image('debian-1', 'qcow2'), '/images/debian-1.qcow2');
  assert.equal(layout.image('debian-1', 'squashfs'), '/images/debian-1.squash');
});

test('the repository’s state is below one hidden directory', () => {
  const { lock, owner, staging, trash, manifests, deletes, deleted, logs } = new Layout('/images');
  for (const path of [lock, owner, staging, trash, manifests, deletes, deleted, logs]) {
    assert.ok(path.startsWith('/images/.nodepool-builder/'), path);
  }
});

test('the repository’s missing directories are created, and existing ones stay', async (t) => {
  const layout = new Layout(await temporaryDirectory(t));
  await layout.create();
  await writeFile(layout.manifest('a'), '{}');
  await layout.create();
  assert.deepEqual(await readdir(join(layout.root, WORKSPACE)), [
    'deleted',
    'deletes',
    'logs',
    'manifests',
    'staging',
    'trash',
  ]);
  assert.deepEqual(await readdir(layout.manifests), ['a.json']);
});

test('an image file’s id is the part of its name before the last dot', () => {
  assert.deepEqual(parseImageFileName('0000000042.qcow2'), { imageId: '0000000042', format: 'qcow2' });
  assert.deepEqual(parseImageFileName('ubuntu-22.04.raw'), { imageId: 'ubuntu-22.04', format: 'raw' });
});

for (const name of [
  '.raw',
  '.hidden.raw',
  'raw',
  'a',
  'a.d',
  'a.qcow2.md5',
  'a.qcow2-new',
  'a.RAW',
  'lost+found',
  '',
]) {
  test(`the name ${JSON.stringify(name)} is not an image file’s`, () => {
    assert.equal(parseImageFileName(name), undefined);
  });
}
