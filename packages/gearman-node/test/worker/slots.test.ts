import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { Slots } from '../../src/worker/slots.ts';

test('a worker’s slot is taken and given back, which calls onFree', () => {
  const onFree = mock.fn();
  const slots = new Slots(2, onFree);
  slots.take();
  slots.take();
  assert.equal(slots.free, 0);
  slots.give();
  assert.equal(slots.free, 1);
  assert.equal(onFree.mock.callCount(), 1);
});

test('waiting for free slots ends when the last slot is given back', async () => {
  const slots = new Slots(2, () => {});
  await slots.allFree();
  slots.take();
  slots.take();
  let isFree = false;
  const allFree = slots.allFree().then(() => (isFree = true));
  slots.give();
  await new Promise(setImmediate);
  assert.equal(isFree, false);
  slots.give();
  await allFree;
});
