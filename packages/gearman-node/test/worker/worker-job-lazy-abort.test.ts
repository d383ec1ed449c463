import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LazyAbort } from '../../src/worker/worker-job.ts';

test('a signal that was read before aborts with the reason', () => {
  const abort = new LazyAbort();
  const { signal } = abort;
  assert.equal(signal.aborted, false);
  abort.abort('why');
  assert.deepEqual([signal.aborted, signal.reason, abort.signal], [true, 'why', signal]);
});

test('a signal that is read afterwards is aborted too; only the first reason counts', () => {
  const abort = new LazyAbort();
  abort.abort('first');
  abort.abort('second');
  assert.deepEqual([abort.signal.aborted, abort.signal.reason], [true, 'first']);
});
