import assert from 'node:assert/strict';
import { test } from 'node:test';
import { WorkFailError } from '../../src/errors.ts';
import { AssignedJob, type JobHandler, runHandler } from '../../src/worker/worker-job.ts';

const job = new AssignedJob(
  { handle: 'H:x:1', function: 'f', unique: '', reducer: '', payload: Buffer.alloc(0) },
  {
    send: () => assert.fail(),
    writable: () => Promise.resolve(),
    confirm: () => Promise.resolve(),
    wantsFailAfterException: () => false,
  },
);

test('a handler’s result is text or bytes, or empty for undefined', async () => {
  const bytes = Buffer.from([0, 1]);
  for (const [handler, data] of [
    [() => 'done', 'done'],
    [() => bytes, bytes],
    [async () => 'later', 'later'],
    [() => {}, ''],
    [async () => {}, ''],
  ] as readonly (readonly [JobHandler, string | Buffer])[]) {
    assert.deepEqual(await runHandler(handler, job), { packet: 'WORK_COMPLETE', data });
  }
});

test('a handler’s WorkFailError is sent as WORK_FAIL', async () => {
  const error = new WorkFailError('no such image');
  for (const handler of [
    () => {
      throw error;
    },
    () => Promise.reject(error),
  ]) {
    assert.deepEqual(await runHandler(handler, job), { packet: 'WORK_FAIL', error });
  }
});

test('any other error of a handler is sent as WORK_EXCEPTION with one line', async () => {
  for (const [thrown, data] of [
    [new Error('first line\nsecond line'), 'first line'],
    [new TypeError(''), 'TypeError'],
    ['a text', 'a text'],
    [undefined, 'undefined'],
    [new Error(`\n${'x'.repeat(5000)}`), 'x'.repeat(1000)],
  ] as const) {
    const outcome = await runHandler(() => Promise.reject(thrown), job);
    assert.deepEqual(outcome, { packet: 'WORK_EXCEPTION', data, error: thrown });
  }
});

test('a handler’s result of another type is sent as WORK_EXCEPTION', async () => {
  const outcome = await runHandler((() => 42) as unknown as JobHandler, job);
  assert.match(outcome.packet === 'WORK_EXCEPTION' ? outcome.data : '', /handler of f returned number/);
});
