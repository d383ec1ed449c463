import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Backoff } from '../../src/connection/backoff.ts';

test('waits double from the shortest to the longest', () => {
  const backoff = new Backoff({ minDelay: 100, maxDelay: 1000 }, () => 0);
  assert.deepEqual(
    Array.from({ length: 6 }, () => backoff.next()),
    [100, 200, 400, 800, 1000, 1000],
  );
});

test('a wait is cut by up to a half at random', () => {
  const backoff = new Backoff({ minDelay: 100, maxDelay: 1000 }, () => 1);
  assert.deepEqual([backoff.next(), backoff.next()], [50, 100]);
});

test('reset starts again with the shortest wait', () => {
  const backoff = new Backoff({ minDelay: 100, maxDelay: 1000 }, () => 0);
  backoff.next();
  backoff.next();
  backoff.reset();
  assert.equal(backoff.next(), 100);
});

test('the wait stays at its limit for ever', () => {
  const backoff = new Backoff({}, () => 0);
  for (let failures = 0; failures < 5000; failures += 1) backoff.next();
  assert.equal(backoff.next(), 5000);
});
