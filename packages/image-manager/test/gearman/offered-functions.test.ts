import assert from 'node:assert/strict';
import { test } from 'node:test';
import { offeredFunctions } from '../../src/gearman/offered-functions.ts';

test('functions are sorted by what they do; what others offer is left out', () => {
  const names = [
    'image-build:debian',
    'image-upload:a:b',
    'image-delete:a:b',
    'image-build',
    ':x',
    'reverse',
    '',
  ];
  assert.deepEqual(offeredFunctions(names), {
    builds: new Set(['debian']),
    uploads: new Set(['a:b']),
    deletes: new Set(['a:b']),
  });
});
