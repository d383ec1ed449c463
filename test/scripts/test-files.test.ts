import assert from 'node:assert/strict';
import { join, relative } from 'node:path';
import { test } from 'node:test';
import { findTestFiles, testsOf } from '../../scripts/test-files.ts';

const root = join(import.meta.dirname, '../..');

test('the search for test files finds this file', async () => {
  assert.ok((await findTestFiles(root)).includes(relative(root, import.meta.filename)));
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
