import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Mutex } from '../../src/repository/mutex.ts';

test('functions in a mutex run one at a time, in the order of the calls', async () => {
  const mutex = new Mutex();
  const steps: string[] = [];
  const work = async (name: string): Promise<string> => {
    steps.push(`${name} begins`);
    await nextTurn();
    steps.push(`${name} ends`);
    return name;
  };
  const results = await Promise.all(['one', 'two'].map((name) => mutex.run(() => work(name))));
  assert.deepEqual(results, ['one', 'two']);
  assert.deepEqual(steps, ['one begins', 'one ends', 'two begins', 'two ends']);
});

test('a failure in a mutex affects only its caller', async () => {
  const mutex = new Mutex();
  const failure = mutex.run(() => Promise.reject(new Error('fault')));
  const next = mutex.run(() => Promise.resolve('next'));
  await assert.rejects(failure, /fault/);
  assert.equal(await next, 'next');
  await mutex.idle();
});
