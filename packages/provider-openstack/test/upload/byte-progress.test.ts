import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Progress } from '@nodepool-builder/image-builder';
import { ByteProgress } from '../../src/upload/byte-progress.ts';

test('it goes only forward, a few times a second, and ends at the whole', (t) => {
  let now = 0;
  t.mock.method(performance, 'now', () => now);
  const seen: Progress[] = [];
  const progress = new ByteProgress(1000, (step) => seen.push(step));
  for (const done of [100, 200, 300]) {
    progress.report(done);
    now += 100;
  }
  // A second try.
  for (const done of [50, 250, 400, 1000]) {
    progress.report(done);
    now += 200;
  }
  progress.end();
  assert.deepEqual(
    seen.map(({ done }) => done),
    [100, 300, 400, 1000],
  );
  assert.ok(seen.every(({ total }) => total === 1000));
});
