import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { unlessAborted } from '../src/cancellation.ts';

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
    await nextTurn(); // an unhandled rejection would be reported by then
  }
});
