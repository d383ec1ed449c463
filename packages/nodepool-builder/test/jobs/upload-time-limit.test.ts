import assert from 'node:assert/strict';
import { after, it } from 'node:test';
import { startTimeLimit } from '../../src/jobs/upload-time-limit.ts';

const NEVER = new AbortController().signal;

// Keeps the process alive, as a connection does in the daemon; the timer of AbortSignal.timeout does not.
const keepsAlive = setInterval(() => {}, 60_000);
after(() => clearInterval(keepsAlive));

async function untilAborted(signal: AbortSignal): Promise<never> {
  const { promise, reject } = Promise.withResolvers<never>();
  if (signal.aborted) reject(signal.reason);
  signal.addEventListener('abort', () => reject(signal.reason));
  return await promise;
}

it('an upload that exceeds its limit is aborted, and the error has a remedy', async () => {
  await assert.rejects(startTimeLimit(0.01, NEVER)(untilAborted), {
    name: 'UploadTimeoutError',
    message: 'the upload took longer than 0.01 s; check the provider, or raise image-upload-timeout',
  });
});

it('without a limit, only the outer signal aborts an upload', async () => {
  const outer = AbortSignal.abort(new Error('stopped'));
  await assert.rejects(
    startTimeLimit(undefined, outer)((signal) => Promise.reject(signal.reason as Error)),
    /stopped/,
  );
});

it('results and errors within the limit are passed on', async () => {
  const failure = new Error('503');
  await assert.rejects(
    startTimeLimit(1000, NEVER)(() => Promise.reject(failure)),
    failure,
  );
  assert.equal(await startTimeLimit(1000, NEVER)(() => Promise.resolve('uuid')), 'uuid');
});

it('an abort from outside does not count as a timeout', async () => {
  const outer = new AbortController();
  const work = startTimeLimit(1000, outer.signal)(untilAborted);
  outer.abort(new Error('stopped'));
  await assert.rejects(work, /stopped/);
});

it('the parts of an upload share its limit', async () => {
  const within = startTimeLimit(0.01, NEVER);
  await assert.rejects(within(untilAborted), { name: 'UploadTimeoutError' });
  await assert.rejects(within(untilAborted), { name: 'UploadTimeoutError' });
});
