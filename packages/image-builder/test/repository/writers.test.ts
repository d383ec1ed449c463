import assert from 'node:assert/strict';
import { open, rename, stat, symlink } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { temporaryDirectory } from '../../../../test/fixtures/temporary-directory.ts';
import { fileKey, findWriters } from '../../src/repository/writers.ts';

/** Returns the names of the given files that are open for writing. */
async function written(paths: readonly string[]): Promise<string[]> {
  const { files } = await findWriters(paths.map((path) => basename(path)));
  const keys = await Promise.all(
    paths.map(async (path) => [basename(path), fileKey(await stat(path))] as const),
  );
  return keys.filter(([, key]) => files.has(key)).map(([name]) => name);
}

async function openFile(t: TestContext, path: string, flags: string): Promise<void> {
  const handle = await open(path, flags);
  t.after(() => handle.close());
}

test('files that are open for writing are found, and files that are read or closed are not', async (t) => {
  const directory = await temporaryDirectory(t);
  const paths = ['w', 'a', 'r+', 'r', 'closed'].map((name) => join(directory, name));
  for (const path of paths) await (await open(path, 'w')).close();
  for (const path of paths.slice(0, 4)) await openFile(t, path, basename(path));
  assert.deepEqual(await written(paths), ['w', 'a', 'r+']);
});

test('a file that is renamed while it is written is found among open files', async (t) => {
  const directory = await temporaryDirectory(t);
  const [before, after] = [join(directory, 'before'), join(directory, 'after')];
  await openFile(t, before, 'w');
  await rename(before, after);
  assert.deepEqual(await written([after]), ['after']);
});

test('a file with the same name in another directory does not count as open for writing', async (t) => {
  const [one, two] = [await temporaryDirectory(t), await temporaryDirectory(t)];
  await openFile(t, join(one, 'image.raw'), 'w');
  await (await open(join(two, 'image.raw'), 'w')).close();
  assert.deepEqual(await written([join(two, 'image.raw')]), []);
});

test('a symbolic link’s target is found as open for writing by its own name', async (t) => {
  const directory = await temporaryDirectory(t);
  await openFile(t, join(directory, 'target'), 'w');
  await symlink('target', join(directory, 'link'));
  assert.deepEqual(await written([join(directory, 'target')]), ['target']);
});
