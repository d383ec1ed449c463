import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LazyAbort } from '../../src/worker/worker-job.ts';

test('a job signal that was read before is aborted with the reason', () => {
  const abort = new LazyAbort();
  const { signal } = abort;
  assert.equal(signal.aborted, false);
  abort.abort('why');
  assert.deepEqual([signal.aborted, signal.reason, abort.signal], [true, 'why', signal]);
});

test('a job signal that is read after the abort is aborted with the first reason', () => {
  const abort = new LazyAbort();
  abort.abort('first');
  abort.abort('second');
  assert.deepEqual([abort.signal.aborted, abort.signal.reason], [true, 'first']);
});
