import assert from 'node:assert/strict';
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { Layout, WORKSPACE } from '../../src/repository/layout.ts';
import { temporaryDirectory } from '../temporary-directory.ts';

test('images lie in the directory itself, as they have always done', () => {
  const layout = new Layout('/images');
  assert.equal(layout.image('debian-1', 'qcow2'), '/images/debian-1.qcow2');
  assert.equal(layout.image('debian-1', 'squashfs'), '/images/debian-1.squash');
});

test('all else lies below one hidden directory', () => {
  const { lock, owner, staging, trash, manifests, deletes, deleted, logs } = new Layout('/images');
  for (const path of [lock, owner, staging, trash, manifests, deletes, deleted, logs]) {
    assert.ok(path.startsWith('/images/.nodepool-builder/'), path);
  }
});

test('its directories are made when they are missing, and left alone when they are there', async (t) => {
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
