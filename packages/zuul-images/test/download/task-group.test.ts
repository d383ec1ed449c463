import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { runTaskGroup } from '../../src/download/task-group.ts';

const { signal } = new AbortController();

test('the results of a task group are in the order of its tasks', async () => {
  assert.deepEqual(await runTaskGroup<[number, string]>(signal, [async () => 1, async () => 'two']), [
    1,
    'two',
  ]);
});

test('the first failed task of a group aborts the others, and its error is thrown once all have ended', async () => {
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
