import assert from 'node:assert/strict';
import { test } from 'node:test';
import { QueueSite } from '../fixtures/queue-site.ts';

test('a function counts its jobs and workers', () => {
  const { queue, submit, worker } = new QueueSite();
  submit('f');
  submit('f', { isHeld: true, isBackground: true });
  queue.grab(worker('f'));
  worker('f');
  const f = queue.function('f');
  assert.deepEqual([f?.total, f?.running, f?.workers.size, f?.hasWaiting], [2, 1, 2, false]);
});

test('a function without jobs and workers is removed', () => {
  const { queue, submit, worker } = new QueueSite();
  const able = worker('f');
  const job = submit('f');
  queue.grab(able);
  queue.disconnect(able);
  assert.notEqual(queue.function('f'), undefined);
  queue.finish(job);
  assert.equal(queue.function('f'), undefined);
});

test('a function that an operator created stays until an operator drops it', () => {
  const { queue, worker } = new QueueSite();
  const pinned = queue.pin('f');
  const able = worker('f');
  assert.equal(queue.drop(pinned), false);
  queue.withdrawAll(able);
  assert.equal(queue.function('f'), pinned);
  assert.equal(queue.drop(pinned), true);
  assert.equal(queue.function('f'), undefined);
});

test('a queue limit counts all jobs of the function and applies only to its priority', () => {
  const { queue, submit, trySubmit } = new QueueSite();
  queue.pin('f').limits.normal = 2;
  const job = submit('f', { unique: 'key' });
  submit('f', { priority: 'low' });
  assert.equal(trySubmit('f'), undefined);
  assert.equal(trySubmit('f', { unique: 'key' }), job, 'a job with the same key is joined');
  assert.notEqual(trySubmit('f', { priority: 'high' }), undefined);
  assert.notEqual(trySubmit('g'), undefined);
});
