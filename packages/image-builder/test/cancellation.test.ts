import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { runTaskGroup, unlessAborted } from '../src/cancellation.ts';

test('an abort ends the wait for a promise, whose later rejection is handled', async () => {
  const reason = new Error('enough');
  for (const isEarly of [true, false]) {
    const abort = new AbortController();
    const work = Promise.withResolvers<void>();
    if (isEarly) abort.abort(reason);
    const waited = assert.rejects(unlessAborted(work.promise, abort.signal), reason);
    abort.abort(reason);
    await waited;
    work.reject(new Error('too late'));
    await nextTurn(); // a rejection that nobody handles would be known by then
  }
});

const { signal } = new AbortController();

test('results come in the order of the tasks', async () => {
  assert.deepEqual(await runTaskGroup<[number, string]>(signal, [async () => 1, async () => 'two']), [
    1,
    'two',
  ]);
});

test('the first failure aborts the other tasks, and is thrown once all have ended', async () => {
  const first = new Error('first');
  let ended = false;
  const tasks = runTaskGroup<[unknown, unknown]>(signal, [
    async () => {
      throw first;
    },
    async (whileAllGoWell) => {
      if (!whileAllGoWell.aborted) await once(whileAllGoWell, 'abort');
      await new Promise((resolve) => void setImmediate(resolve));
      ended = true;
      throw new Error('second');
    },
  ]);
  await assert.rejects(tasks, first);
  assert.equal(ended, true);
});
