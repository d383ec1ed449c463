import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import { unlessAborted } from '../src/unless-aborted.ts';

const forever = new Promise<never>(() => {});

test('an abortable wait settles like its promise and removes its abort listener', async () => {
  const { signal } = new AbortController();
  assert.equal(await unlessAborted(Promise.resolve(1), signal), 1);
  assert.equal(await unlessAborted(Promise.resolve(2), undefined), 2);
  await assert.rejects(unlessAborted(Promise.reject(new Error('no')), signal), /^Error: no$/);
  assert.equal(getEventListeners(signal, 'abort').length, 0);
});

test('an aborted wait rejects with the signal’s reason as the cause', async () => {
  const controller = new AbortController();
  const waiting = unlessAborted(forever, controller.signal);
  const reason = new Error('enough');
  controller.abort(reason);
  await assert.rejects(waiting, { code: 'aborted', message: 'aborted: enough', cause: reason });
});

test('a wait rejects at once if its signal is aborted, also with a reason that is not an Error', async () => {
  await assert.rejects(unlessAborted(forever, AbortSignal.abort('tired')), {
    code: 'aborted',
    message: 'aborted: tired',
  });
});
