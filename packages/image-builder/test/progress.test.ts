import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Progress } from '../src/index.ts';
import { portion, steadyProgress } from '../src/progress.ts';

test('progress follows a transfer that starts again from its beginning', () => {
  const seen: Progress[] = [];
  const tell = steadyProgress((progress) => seen.push(progress));
  for (const done of [0, 790, 1, 1001]) tell({ done, total: 1000 });
  assert.deepEqual(seen, [
    { done: 790, total: 1000 },
    { done: 1, total: 1000 },
    { done: 1000, total: 1000 },
  ]);
});

test('progress is reported five times a second, and always at the end', (t) => {
  let now = 0;
  t.mock.method(performance, 'now', () => now);
  const seen: number[] = [];
  const tell = steadyProgress(({ done }) => seen.push(done));
  for (; now <= 1000; now += 1) tell({ done: now, total: 1000 });
  assert.deepEqual(seen, [1, 201, 401, 601, 801, 1000]);
});

test('a build step of unknown length reports its beginning', () => {
  const seen: Progress[] = [];
  portion((progress) => seen.push(progress), 40, 60)({ done: 5, total: 0 });
  assert.deepEqual(seen, [{ done: 40, total: 100 }]);
});

test('a build step reports a portion of the whole progress', () => {
  const seen: Progress[] = [];
  const tell = portion((progress) => seen.push(progress), 40, 60);
  tell({ done: 1, total: 2 });
  tell({ done: 2, total: 2 });
  assert.deepEqual(seen, [
    { done: 50, total: 100 },
    { done: 60, total: 100 },
  ]);
});

test('the beginning and the end of a wait are reported as progress at once', () => {
  const seen: Progress[] = [];
  const tell = steadyProgress((progress) => seen.push(progress));
  for (const waiting of ['disk space', 'disk space', undefined]) {
    portion(tell, 0, 90)({ done: 0, total: 100, ...(waiting !== undefined && { waiting }) });
  }
  assert.deepEqual(seen, [
    { done: 0, total: 100, waiting: 'disk space' },
    { done: 0, total: 100 },
  ]);
});
