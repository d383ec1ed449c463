import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { test } from 'node:test';
import { findTestFiles, testsOf } from '../../scripts/test-files.ts';
import { temporaryDirectory } from '../fixtures/scratch-directory.ts';

const root = join(import.meta.dirname, '../..');

test('the files of npm test contain this file', async () => {
  assert.ok((await findTestFiles(root, 'test')).includes(relative(root, import.meta.filename)));
});

test('a test file belongs either to npm test, or, with a reason in its first line, to the rest of test:all', async (t) => {
  const directory = temporaryDirectory(t);
  await mkdir(join(directory, 'test'));
  const sources = {
    'test/long.test.ts': '// Only in test:all: it takes a minute.\n',
    'test/no-reason.test.ts': '// Only in test:all:\n',
    'test/short.test.ts': '// Not a unit test: it starts a program.\n// Only in test:all: no.\n',
  };
  for (const [path, source] of Object.entries(sources)) await writeFile(join(directory, path), source);
  assert.deepEqual(await findTestFiles(directory, 'rest'), ['test/long.test.ts']);
  assert.deepEqual(await findTestFiles(directory, 'test'), ['test/no-reason.test.ts', 'test/short.test.ts']);
  assert.deepEqual(await findTestFiles(directory, 'all'), Object.keys(sources));
});

const files = [
  'packages/a/test/codec.test.ts',
  'packages/a/test/codec-errors.test.ts',
  'packages/a/test/codec/cuts.test.ts',
  'packages/a/test/codecs.test.ts',
  'packages/a/test/deep/queue.test.ts',
  'packages/b/test/codec.test.ts',
  'test/scripts/mirror.test.ts',
];

test('a source’s tests mirror its name in the same package', () => {
  assert.deepEqual(testsOf(['packages/a/src/codec.ts'], files), files.slice(0, 3));
  assert.deepEqual(testsOf(['packages/a/src/deep/queue.ts'], files), [files[4]]);
  assert.deepEqual(testsOf(['scripts/mirror.ts'], files), ['test/scripts/mirror.test.ts']);
});

test('a changed test is selected, and files that are not sources have no tests', () => {
  assert.deepEqual(testsOf(['packages/b/test/codec.test.ts'], files), ['packages/b/test/codec.test.ts']);
  assert.deepEqual(testsOf(['README.md', 'packages/a/src/codec.md', 'packages/a/codec.ts'], files), []);
});
