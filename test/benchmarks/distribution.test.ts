// Only in test:all: it tests the benchmarks.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { distributionOf } from './distribution.ts';

test('each figure in a distribution is the sample of its rank, in any order of samples', () => {
  const samples = Array.from({ length: 100 }, (_, index) => 100 - index);
  assert.deepEqual(distributionOf(samples), { count: 100, min: 1, median: 50, p95: 95, max: 100 });
  assert.deepEqual(distributionOf([30, 9, 100]), { count: 3, min: 9, median: 30, p95: 100, max: 100 });
});

test('all figures in a distribution of one sample are equal', () => {
  assert.deepEqual(distributionOf([7]), { count: 1, min: 7, median: 7, p95: 7, max: 7 });
});

test('a distribution of an empty list of samples is rejected', () => {
  assert.throws(() => distributionOf([]), RangeError);
});
