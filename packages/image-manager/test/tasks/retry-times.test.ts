import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RetryTimes } from '../../src/tasks/tasks.ts';

const TIMING = { retryDelay: 60, longestRetryDelay: 200, leakInterval: 600, absenceLimit: 1800 };

test('each failure of an id doubles its pause, up to the longest', () => {
  const retries = new RetryTimes(() => TIMING);
  assert.deepEqual(
    [1000, 2000, 3000, 4000].map((now) => retries.failed('a', now)),
    [60, 120, 200, 200],
  );
  assert.equal(retries.failed('b', 5000), 60);
  assert.deepEqual(
    [...retries.all],
    [
      ['a', 204_000],
      ['b', 65_000],
    ],
  );
});

test('a success resets the pause', () => {
  const retries = new RetryTimes(() => TIMING);
  retries.failed('a', 0);
  retries.failed('a', 0);
  retries.succeeded('a');
  assert.equal(retries.all.size, 0);
  assert.equal(retries.failed('a', 0), 60);
});
