import assert from 'node:assert/strict';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { readImages } from '../../src/repository/read-images.ts';
import { temporaryDirectory } from '../temporary-directory.ts';
import { withCode } from '../with-code.ts';

test('the images of a directory are listed, and it stays as it is', async (t) => {
  const directory = await temporaryDirectory(t);
  for (const name of ['1.raw', '1.qcow2', '2.vhd', '.hidden.raw', '3.txt', '4.raw.md5', 'a b.raw']) {
    await writeFile(join(directory, name), 'content');
  }
  await mkdir(join(directory, '5.raw'));
  const before = await readdir(directory);
  const formats = (await readImages(directory)).map(({ id, files }) => [
    id,
    files.map(({ format }) => format),
  ]);
  assert.deepEqual(Object.fromEntries(formats), { 1: ['qcow2', 'raw'], 2: ['vhd'] });
  assert.deepEqual(await readdir(directory), before);
});

test('a directory that is not there is named', async (t) => {
  const missing = join(await temporaryDirectory(t), 'missing');
  await assert.rejects(
    readImages(missing),
    withCode('directory-not-usable', /missing.*create the directory/),
  );
});
