import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { together } from '../../src/download/together.ts';

const { signal } = new AbortController();

test('the results come in the order of the works', async () => {
  assert.deepEqual(await together<[number, string]>(signal, [async () => 1, async () => 'two']), [1, 'two']);
});

test('the first failure aborts the others, is waited for by all, and is what is thrown', async () => {
  const first = new Error('first');
  let ended = false;
  const works = together<[unknown, unknown]>(signal, [
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
  await assert.rejects(works, first);
  assert.equal(ended, true);
});
