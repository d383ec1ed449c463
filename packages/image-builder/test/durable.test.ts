import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryDirectory } from '../../../test/fixtures/temporary-directory.ts';
import { writeDurably } from '../src/durable.ts';

test('a file is replaced durably, and no other file stays', async (t) => {
  const directory = await temporaryDirectory(t);
  const path = join(directory, 'file');
  await writeDurably(path, 'one');
  await writeDurably(path, 'two');
  assert.equal(await readFile(path, 'utf8'), 'two');
  assert.deepEqual(await readdir(directory), ['file']);
});
