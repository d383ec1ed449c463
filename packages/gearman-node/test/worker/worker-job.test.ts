import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GearmanError } from '../../src/errors.ts';
import { AssignedJob, type JobConnection } from '../../src/worker/worker-job.ts';

function assigned(wantsFail = false): {
  job: AssignedJob;
  sent: unknown[][];
  confirmations: PromiseWithResolvers<void>[];
} {
  const sent: unknown[][] = [];
  const confirmations: PromiseWithResolvers<void>[] = [];
  const connection: JobConnection = {
    send: (...packet) => sent.push(packet),
    writable: () => Promise.resolve(),
    confirm: () => {
      const confirmation = Promise.withResolvers<void>();
      confirmations.push(confirmation);
      return confirmation.promise;
    },
    wantsFailAfterException: () => wantsFail,
  };
  const assignment = { handle: 'H:x:1', function: 'f', unique: 'u', reducer: '', payload: Buffer.from('p') };
  return { job: new AssignedJob(assignment, connection), sent, confirmations };
}

test('a job’s status, data and warnings are sent until it ends, and not afterwards', async () => {
  const { job, sent } = assigned();
  const send = async () => {
    job.sendStatus(1, 2);
    await job.sendData('d');
    await job.sendWarning('w');
  };
  await send();
  job.finish({ packet: 'WORK_COMPLETE', data: 'done' });
  await send();
  assert.deepEqual(sent, [
    ['WORK_STATUS', 'H:x:1', 1, 2],
    ['WORK_DATA', 'H:x:1', 'd'],
    ['WORK_WARNING', 'H:x:1', 'w'],
    ['WORK_COMPLETE', 'H:x:1', 'done'],
  ]);
});

test('a job’s status must consist of non-negative integers', () => {
  const { job, sent } = assigned();
  assert.throws(() => job.sendStatus(0.5, 1), { code: 'invalid-argument' });
  assert.throws(() => job.sendStatus(1, Number.NaN), { code: 'invalid-argument' });
  assert.deepEqual(sent, []);
});

test('WORK_FAIL follows an exception only if the server expects it', () => {
  for (const wantsFail of [false, true]) {
    const { job, sent } = assigned(wantsFail);
    job.finish({ packet: 'WORK_EXCEPTION', data: 'boom', error: undefined });
    const exception = ['WORK_EXCEPTION', 'H:x:1', 'boom'];
    assert.deepEqual(sent, wantsFail ? [exception, ['WORK_FAIL', 'H:x:1']] : [exception]);
  }
});

test('a job’s acknowledged promise waits until the server has processed the final packet', async () => {
  const { job, confirmations } = assigned();
  const before = job.acknowledged;
  assert.equal(confirmations.length, 0);
  job.finish({ packet: 'WORK_COMPLETE', data: '' });
  confirmations[0]?.resolve();
  await before;
  assert.equal(job.acknowledged, before);

  const late = assigned();
  late.job.finish({ packet: 'WORK_COMPLETE', data: '' });
  const after = late.job.acknowledged;
  late.confirmations[0]?.resolve();
  await after;
});

test('a stopped worker and a lost server abort different signals of the job', () => {
  const { job } = assigned();
  const reason = new GearmanError('connection-lost', 'm');
  job.loseConnection(reason);
  assert.deepEqual([job.connectionLost.reason, job.signal.aborted], [reason, false]);
  job.stop(reason);
  assert.equal(job.signal.reason, reason);
});
