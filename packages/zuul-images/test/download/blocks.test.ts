import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Blocks } from '../../src/download/blocks.ts';

test('what is missing is claimed once, in order, around what is there', () => {
  const blocks = new Blocks([2, 3]);
  const claims = Array.from({ length: 4 }, () => blocks.claim(8, 3));
  assert.deepEqual(claims, [{ begin: 0, end: 2 }, { begin: 4, end: 7 }, { begin: 7, end: 8 }, undefined]);
});

test('of a claim that is given up what did not come is claimed again', () => {
  const blocks = new Blocks();
  const run = blocks.claim(4, 4);
  assert.deepEqual(run, { begin: 0, end: 4 });
  blocks.add(0);
  blocks.release(run);
  assert.deepEqual(blocks.claim(4, 4), { begin: 1, end: 4 });
});

test('a reader waits for the block that it needs', async () => {
  const blocks = new Blocks([0]);
  await blocks.wait(0);
  let come = false;
  const waiting = blocks.wait(1).then(() => (come = true));
  blocks.add(2);
  await new Promise((resolve) => void setImmediate(resolve));
  assert.equal(come, false);
  blocks.add(1);
  await waiting;
  assert.equal(blocks.count, 3);
});
