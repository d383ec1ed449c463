import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatBytes } from '../src/format-bytes.ts';

test('a number of bytes is formatted with the largest unit that it reaches', () => {
  const sizes = [0, 1023, 1024, 1_572_864, 4_509_715_660, 3 * 2 ** 60].map(formatBytes);
  assert.deepEqual(sizes, ['0 B', '1023 B', '1.0 KiB', '1.5 MiB', '4.2 GiB', '3072.0 PiB']);
});
