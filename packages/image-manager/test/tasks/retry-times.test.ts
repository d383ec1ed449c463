import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RetryTimes } from '../../src/tasks/tasks.ts';

/** Retry times whose clock the test sets. */
function setUp(): { site: { now: number }; retries: RetryTimes } {
  const timing = { retryDelay: 60, maxRetryDelay: 200, orphanScanInterval: 600, absenceTimeout: 1800 };
  const site = { now: 0 };
  const configuration = () => ({ diskimages: [], providers: [], timing });
  return { site, retries: new RetryTimes({ configuration, elapsed: () => site.now }) };
}

test('each failure of an id doubles its pause, up to the maximum', () => {
  const { site, retries } = setUp();
  const failAt = (now: number, id: string): number => {
    site.now = now;
    return retries.failed(id);
  };
  assert.deepEqual(
    [1000, 2000, 3000, 4000].map((now) => failAt(now, 'a')),
    [60, 120, 200, 200],
  );
  assert.equal(failAt(5000, 'b'), 60);
  assert.deepEqual(
    [...retries.all],
    [
      ['a', 204_000],
      ['b', 65_000],
    ],
  );
});

test('a success resets an id’s pause', () => {
  const { retries } = setUp();
  retries.failed('a');
  retries.failed('a');
  retries.succeeded('a');
  assert.equal(retries.all.size, 0);
  assert.equal(retries.failed('a'), 60);
});
