import assert from 'node:assert/strict';
import { after, it } from 'node:test';
import { startTimeLimit } from '../../src/jobs/upload-time-limit.ts';

const NEVER = new AbortController().signal;

// The timer of AbortSignal.timeout does not: in the daemon a connection does.
const keepsAlive = setInterval(() => {}, 60_000);
after(() => clearInterval(keepsAlive));

async function untilAborted(signal: AbortSignal): Promise<never> {
  const { promise, reject } = Promise.withResolvers<never>();
  if (signal.aborted) reject(signal.reason);
  signal.addEventListener('abort', () => reject(signal.reason));
  return await promise;
}

it('an upload that takes too long is stopped, and the error says what to do', async () => {
  await assert.rejects(startTimeLimit(0.01, NEVER)(untilAborted), {
    name: 'UploadTimeoutError',
    message: 'the upload took longer than 0.01 s; look at the provider, or raise image-upload-timeout',
  });
});

it('without a limit only the outer signal stops it', async () => {
  const outer = AbortSignal.abort(new Error('stopped'));
  await assert.rejects(
    startTimeLimit(undefined, outer)((signal) => Promise.reject(signal.reason as Error)),
    /stopped/,
  );
});

it('an error in time is passed on, and so is a result', async () => {
  const failure = new Error('503');
  await assert.rejects(
    startTimeLimit(1000, NEVER)(() => Promise.reject(failure)),
    failure,
  );
  assert.equal(await startTimeLimit(1000, NEVER)(() => Promise.resolve('uuid')), 'uuid');
});

it('what is stopped from outside is no time-out', async () => {
  const outer = new AbortController();
  const work = startTimeLimit(1000, outer.signal)(untilAborted);
  outer.abort(new Error('stopped'));
  await assert.rejects(work, /stopped/);
});

it('the parts of an upload share its time limit', async () => {
  const within = startTimeLimit(0.01, NEVER);
  await assert.rejects(within(untilAborted), { name: 'UploadTimeoutError' });
  await assert.rejects(within(untilAborted), { name: 'UploadTimeoutError' });
});
