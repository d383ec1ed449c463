import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Backoff } from '../../src/connection/backoff.ts';

test('pauses between attempts double from the minimum to the maximum', () => {
  const backoff = new Backoff({ minDelay: 100, maxDelay: 1000 }, () => 0);
  assert.deepEqual(
    Array.from({ length: 6 }, () => backoff.next()),
    [100, 200, 400, 800, 1000, 1000],
  );
});

test('each pause between attempts is reduced by up to a half at random', () => {
  const backoff = new Backoff({ minDelay: 100, maxDelay: 1000 }, () => 1);
  assert.deepEqual([backoff.next(), backoff.next()], [50, 100]);
});

test('a reset backoff restarts with the shortest pause', () => {
  const backoff = new Backoff({ minDelay: 100, maxDelay: 1000 }, () => 0);
  backoff.next();
  backoff.next();
  backoff.reset();
  assert.equal(backoff.next(), 100);
});

test('the pause between attempts stays at the maximum', () => {
  const backoff = new Backoff({}, () => 0);
  for (let failures = 0; failures < 5000; failures += 1) backoff.next();
  assert.equal(backoff.next(), 5000);
});
