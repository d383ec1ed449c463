import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { mock, test } from 'node:test';
import type { SubmitOptions } from '../../src/client/submission.ts';
import { SubmittedJob } from '../../src/client/submitted-job.ts';
import { GearmanError } from '../../src/errors.ts';
import { activeTimers } from '../fixtures/active-timers.ts';

const connection = { pause: () => {}, resume: () => {}, abandon: () => {} };

function submitted(options: SubmitOptions = {}) {
  const resubmit = mock.fn();
  return { job: new SubmittedJob('f', 'payload', options, resubmit), resubmit };
}

test('a foreground job ends with its result, a background job once the server has accepted it', async () => {
  const { job } = submitted();
  job.accept('H:x:1', connection);
  assert.equal(await job.handle, 'H:x:1');
  assert.equal(job.isSettled, false);
  job.complete(Buffer.from('done'));
  assert.equal(String(await job), 'done');

  const background = submitted({ background: true }).job;
  background.accept('H:x:2', connection);
  assert.equal((await background).length, 0);
});

test('a job’s errors name its handle and function', async () => {
  const failed = submitted().job;
  failed.accept('H:x:1', connection);
  failed.fail();
  await assert.rejects(failed.result, { code: 'job-failed', handle: 'H:x:1', message: /of f/ });
  const thrown = submitted().job;
  thrown.accept('H:x:2', connection);
  thrown.throwException(Buffer.from('boom'));
  await assert.rejects(thrown.result, { code: 'job-exception', handle: 'H:x:2', message: /boom/ });
});

test('only the first outcome of a job has an effect', async () => {
  const { job } = submitted();
  job.complete(Buffer.from('first'));
  job.fail();
  job.lose(new GearmanError('connection-lost', 'm'));
  assert.equal(String(await job), 'first');
});

test('a job whose server is lost is rejected or resubmitted, as the caller chose', async () => {
  const cause = new GearmanError('connection-lost', 'm');
  const rejected = submitted();
  rejected.job.lose(cause);
  await assert.rejects(rejected.job.result, { code: 'job-lost', cause, message: /^a job of f / });
  assert.equal(rejected.resubmit.mock.callCount(), 0);

  const again = submitted({ onServerLost: 'resubmit' });
  again.job.lose(cause);
  assert.deepEqual([again.resubmit.mock.callCount(), again.job.isResubmitted], [1, true]);
  assert.equal(again.job.isSettled, false);

  const closed = submitted({ onServerLost: 'resubmit' });
  closed.job.lose(new GearmanError('closed', 'm'));
  await assert.rejects(closed.job.result, { code: 'closed' });
});

test('a job is rejected at its timeout, and its earlier end stops the timer', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const late = submitted({ timeout: 100 }).job;
  const inTime = submitted({ timeout: 100 }).job;
  inTime.complete(Buffer.from('done'));
  t.mock.timers.tick(100);
  await assert.rejects(late.result, { code: 'job-timeout', message: /^a job of f .* 100 ms$/ });
  await assert.rejects(late.handle, { code: 'job-timeout' });
  assert.equal(String(await inTime), 'done');
});

test('the timeout of a finished job does not keep the process alive', () => {
  const before = activeTimers();
  const { job } = submitted({ timeout: 3_600_000 });
  assert.equal(activeTimers(), before + 1);
  job.complete(Buffer.alloc(0));
  assert.equal(activeTimers(), before);
});

test('an aborted signal rejects the job, and the end of the job removes the listener', async () => {
  const controller = new AbortController();
  const aborted = submitted({ signal: controller.signal }).job;
  const ended = submitted({ signal: controller.signal }).job;
  ended.complete(Buffer.alloc(0));
  assert.equal(getEventListeners(controller.signal, 'abort').length, 1);
  controller.abort(new Error('enough'));
  await assert.rejects(aborted.result, { code: 'aborted', message: /enough/ });
  await assert.rejects(submitted({ signal: controller.signal }).job.result, { code: 'aborted' });
});

test('a job’s events end with the job or with its error', async () => {
  const { job } = submitted();
  const reading = (async () => {
    const types: string[] = [];
    for await (const event of job) types.push(event.type);
    return types;
  })();
  job.push({ type: 'status', numerator: 1, denominator: 2 });
  job.push({ type: 'data', data: Buffer.from('d') });
  job.complete(Buffer.alloc(0));
  job.push({ type: 'data', data: Buffer.from('too late') });
  assert.deepEqual(await reading, ['status', 'data']);

  const failed = submitted().job;
  failed.fail();
  await assert.rejects(failed[Symbol.asyncIterator]().next(), { code: 'job-failed' });
});

test('a job keeps its payload only while it may be sent', () => {
  const ends: readonly ((job: SubmittedJob) => void)[] = [
    (job) => job.accept('H:x:1', connection),
    (job) => job.reject(new GearmanError('aborted', 'm')),
    (job) => job.lose(new GearmanError('connection-lost', 'm')),
  ];
  for (const end of ends) {
    const { job } = submitted();
    assert.ok(job.submission);
    end(job);
    assert.equal(job.submission, undefined);
  }
  const { job } = submitted({ onServerLost: 'resubmit' });
  job.accept('H:x:1', connection);
  job.lose(new GearmanError('connection-lost', 'm'));
  assert.ok(job.submission, 'it is sent again');
  job.complete(Buffer.alloc(0));
  assert.equal(job.submission, undefined);
});

test('a job’s timeout of 30 days does not fire immediately', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const { job } = submitted({ timeout: 30 * 24 * 60 * 60 * 1000 });
  t.mock.timers.tick(1000);
  assert.equal(job.isSettled, false);
  job.complete(Buffer.alloc(0));
});
