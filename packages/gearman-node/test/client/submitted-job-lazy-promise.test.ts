import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LazyPromise } from '../../src/client/submitted-job.ts';

test('a lazy promise settles before or after its first use, and only the first call has an effect', async () => {
  const before = new LazyPromise<number>();
  const { promise } = before;
  before.resolve(1);
  before.reject(new Error('too late'));
  assert.deepEqual([await promise, await before.promise], [1, 1]);

  const after = new LazyPromise<number>();
  after.reject(new Error('no'));
  after.resolve(1);
  await assert.rejects(after.promise, /^Error: no$/);
});

test('a lazy promise that was never used causes no unhandled rejection', async (t) => {
  const unhandled: unknown[] = [];
  const listener = (reason: unknown) => unhandled.push(reason);
  process.on('unhandledRejection', listener);
  t.after(() => process.off('unhandledRejection', listener));
  new LazyPromise<number>().reject(new Error('nobody cares'));
  await new Promise(setImmediate);
  assert.deepEqual(unhandled, []);
});
