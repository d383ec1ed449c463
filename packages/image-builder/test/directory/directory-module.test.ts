import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DIRECTORY_MODULE } from '../../src/directory/directory-module.ts';

test('a name that cannot be part of a file name fails only its own uploads', () => {
  const images = ['a/b', 'good', '-x'].map((name) => ({ name, meta: {} }));
  const diagnostics = [...(DIRECTORY_MODULE.check?.({ name: 'pool', directory: '/p', images }) ?? [])];
  assert.deepEqual(
    diagnostics.map(({ pointer, severity, reason }) => [pointer, severity, reason]),
    [
      [
        '/images/0/name',
        'job-error',
        'leads to invalid file names, so that uploads fail: each contains a "/"',
      ],
      [
        '/images/2/name',
        'job-error',
        'leads to invalid file names, so that uploads fail: each begins with a "-", as an option does',
      ],
    ],
  );
});
