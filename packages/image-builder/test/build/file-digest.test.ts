import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryDirectory } from '../../../../test/fixtures/temporary-directory.ts';
import { directoryDigest, fileDigest } from '../../src/build/file-digest.ts';

const { signal } = new AbortController();
const hexDigest = (text: string): string => createHash('sha256').update(text).digest('hex');

test('a file is digested up to a size limit', async (t) => {
  const path = join(await temporaryDirectory(t), 'file');
  await writeFile(path, 'content');
  assert.equal(await fileDigest(path, { limit: 7, signal }), hexDigest('content'));
  assert.equal(await fileDigest(path, { limit: 6, signal }), undefined);
  for (const other of ['/dev/zero', '/missing', '/']) {
    assert.equal(await fileDigest(other, { limit: 7, signal }), undefined);
  }
  await assert.rejects(fileDigest(path, { limit: 7, signal: AbortSignal.abort() }), { name: 'AbortError' });
});

test('a directory’s digest equals the one that Go computes for a module', async (t) => {
  const directory = await temporaryDirectory(t);
  await mkdir(join(directory, 'b'));
  await writeFile(join(directory, 'b', 'c'), 'content');
  await writeFile(join(directory, 'a'), '');
  await symlink('b/c', join(directory, 'd'));
  const lines = `${hexDigest('')}  a\n${hexDigest('content')}  b/c\n${hexDigest('b/c')}  d\n`;
  assert.equal(await directoryDigest(directory, signal), hexDigest(lines));
  assert.equal(await directoryDigest(join(directory, 'missing'), signal), undefined);
});
