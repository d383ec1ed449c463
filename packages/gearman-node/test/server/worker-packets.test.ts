// Not a unit test: it takes seconds.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encodePacket } from '../fixtures/encode-packet.ts';
import { JobServerSite, nextJob, settled } from '../fixtures/job-server-site.ts';

test('GRAB_JOB returns handle, function and payload, and GRAB_JOB_UNIQ and GRAB_JOB_ALL add the key', async (t) => {
  const site = await JobServerSite.start(t);
  const worker = await site.worker('f');
  const client = await site.connect();
  const handles: string[] = [];
  for (const unique of ['a', 'b', 'c']) {
    const [, handle = ''] = await client.ask('SUBMIT_JOB', 'f', unique, '\0data\0');
    handles.push(handle);
  }
  assert.deepEqual(await worker.ask('GRAB_JOB'), ['JOB_ASSIGN', handles[0], 'f', '\0data\0']);
  assert.deepEqual(await worker.ask('GRAB_JOB_UNIQ'), ['JOB_ASSIGN_UNIQ', handles[1], 'f', 'b', '\0data\0']);
  assert.deepEqual(await worker.ask('GRAB_JOB_ALL'), ['JOB_ASSIGN_UNIQ', handles[2], 'f', 'c', '\0data\0']);
  for (const grab of ['GRAB_JOB', 'GRAB_JOB_UNIQ', 'GRAB_JOB_ALL'] as const) {
    assert.deepEqual(await worker.ask(grab), ['NO_JOB']);
  }
});

test('a sleeping worker gets one NOOP and no other packet', async (t) => {
  const site = await JobServerSite.start(t);
  const worker = await site.worker('f');
  worker.send('PRE_SLEEP');
  assert.deepEqual(await settled(worker), []);
  await site.submit('f');
  await site.submit('f');
  assert.deepEqual(await settled(worker), [['NOOP']]);
});

test('a second sleeping worker is woken if the first does not grab', async (t) => {
  const site = await JobServerSite.start(t);
  const first = await site.worker('f');
  const second = await site.worker('f');
  for (const worker of [first, second]) {
    worker.send('PRE_SLEEP');
    await settled(worker);
  }
  await site.submit('f');
  assert.deepEqual(await first.next(), ['NOOP']);
  assert.deepEqual(await second.next(), ['NOOP']);
});

test('a worker’s packets about its job are passed to the client', async (t) => {
  const site = await JobServerSite.start(t);
  const worker = await site.worker('f');
  const [client, handle] = await site.submit('f');
  await worker.ask('GRAB_JOB_UNIQ');
  worker.send('WORK_STATUS', handle, 1, 3);
  worker.send('WORK_DATA', handle, 'part\0');
  worker.send('WORK_WARNING', handle, 'careful');
  worker.send('WORK_COMPLETE', handle, '\0done');
  assert.deepEqual(await client.until('WORK_COMPLETE'), [
    ['WORK_STATUS', handle, '1', '3'],
    ['WORK_DATA', handle, 'part\0'],
    ['WORK_WARNING', handle, 'careful'],
    ['WORK_COMPLETE', handle, '\0done'],
  ]);
});

test('clients with the option exceptions get WORK_EXCEPTION, all others WORK_FAIL', async (t) => {
  const site = await JobServerSite.start(t);
  const worker = await site.worker('f');
  const [plain, asking] = [await site.connect(), await site.connect()];
  assert.deepEqual(await asking.ask('OPTION_REQ', 'exceptions'), ['OPTION_RES', 'exceptions']);
  const [, handle = ''] = await plain.ask('SUBMIT_JOB', 'f', 'key', '');
  await asking.ask('SUBMIT_JOB', 'f', 'key', '');
  await worker.ask('GRAB_JOB_UNIQ');
  worker.send('WORK_EXCEPTION', handle, 'boom');
  assert.deepEqual(await plain.next(), ['WORK_FAIL', handle]);
  assert.deepEqual(await asking.next(), ['WORK_EXCEPTION', handle, 'boom']);
  assert.deepEqual(await worker.ask('WORK_FAIL', handle), [
    'ERROR',
    'JOB_NOT_FOUND',
    'Job given in work result not found',
  ]);
});

test('only the worker that runs a job may send packets about it', async (t) => {
  const site = await JobServerSite.start(t);
  const worker = await site.worker('f');
  const [client, handle] = await site.submit('f');
  await worker.ask('GRAB_JOB_UNIQ');
  const stranger = await site.connect();
  stranger.send('WORK_STATUS', handle, 1, 2);
  for (const name of ['WORK_DATA', 'WORK_WARNING', 'WORK_COMPLETE', 'WORK_EXCEPTION'] as const) {
    stranger.send(name, handle, 'forged');
  }
  stranger.send('WORK_FAIL', handle);
  const replies = await settled(stranger);
  assert.deepEqual(
    replies.map(([name, code]) => [name, code]),
    Array.from({ length: 6 }, () => ['ERROR', 'JOB_NOT_FOUND']),
  );
  assert.deepEqual(await settled(client), []);
});

test('a worker gets no job of a function after CANT_DO or RESET_ABILITIES', async (t) => {
  const site = await JobServerSite.start(t);
  const worker = await site.worker('f', 'g', 'h');
  for (const name of ['f', 'g', 'h']) await site.submit(name, name);
  worker.send('CANT_DO', 'f');
  worker.send('CANT_DO', 'never offered');
  assert.deepEqual((await worker.ask('GRAB_JOB')).at(-1), 'g');
  worker.send('RESET_ABILITIES');
  assert.deepEqual(await worker.ask('GRAB_JOB'), ['NO_JOB']);
  worker.send('CAN_DO', 'f');
  assert.deepEqual((await worker.ask('GRAB_JOB')).at(-1), 'f');
});

test('a running job stays with its worker after CANT_DO and RESET_ABILITIES', async (t) => {
  const site = await JobServerSite.start(t);
  const worker = await site.worker('f');
  const [client, handle] = await site.submit('f');
  await worker.ask('GRAB_JOB');
  worker.send('CANT_DO', 'f');
  worker.send('RESET_ABILITIES');
  await settled(worker);
  const other = await site.worker('f');
  assert.deepEqual(await other.ask('GRAB_JOB'), ['NO_JOB']);
  worker.send('WORK_COMPLETE', handle, 'mine');
  assert.deepEqual(await client.next(), ['WORK_COMPLETE', handle, 'mine']);
});

test('a disconnected worker’s job goes to another one, and its client gets no packet about it', async (t) => {
  const site = await JobServerSite.start(t);
  const [client, handle] = await site.submit('f');
  const assigned = ['JOB_ASSIGN', handle, 'f', ''];
  for (const end of ['end', 'resetAndDestroy'] as const) {
    const lost = await site.worker('f');
    assert.deepEqual(await nextJob(lost), assigned);
    lost.socket[end]();
    await lost.closed;
  }
  const worker = await site.worker('f');
  assert.deepEqual(await nextJob(worker), assigned);
  worker.send('WORK_COMPLETE', handle, 'third time lucky');
  assert.deepEqual(await client.next(), ['WORK_COMPLETE', handle, 'third time lucky']);
});

test('a job over its CAN_DO_TIMEOUT goes to another worker', async (t) => {
  const site = await JobServerSite.start(t);
  const slow = await site.connect();
  slow.send('CAN_DO_TIMEOUT', 'f', 1);
  const [, handle] = await site.submit('f');
  await slow.ask('GRAB_JOB');
  const other = await site.worker('f');
  assert.deepEqual(await nextJob(other), ['JOB_ASSIGN', handle, 'f', '']);
  assert.equal((await slow.ask('WORK_COMPLETE', handle, 'late'))[1], 'JOB_NOT_FOUND');
});

test('a lost worker’s CAN_DO_TIMEOUT does not apply to the next worker', async (t) => {
  const site = await JobServerSite.start(t);
  const [lost, clock] = [await site.connect(), await site.connect()];
  lost.send('CAN_DO_TIMEOUT', 'f', 1000);
  const [client, handle] = await site.submit('f');
  await lost.ask('GRAB_JOB');
  await lost.close();
  const patient = await site.worker('f');
  assert.deepEqual(await nextJob(patient), ['JOB_ASSIGN', handle, 'f', '']);

  // A job with the same limit shows when the limit has passed.
  clock.send('CAN_DO_TIMEOUT', 'g', 1000);
  await site.submit('g');
  await clock.ask('GRAB_JOB');
  await nextJob(await site.worker('g'));

  patient.send('WORK_COMPLETE', handle, 'done');
  assert.deepEqual(await client.next(), ['WORK_COMPLETE', handle, 'done']);
});

test('a function name over 512 bytes is rejected, and the connection stays open', async (t) => {
  const site = await JobServerSite.start(t);
  const worker = await site.connect();
  assert.equal((await worker.ask('CAN_DO', 'x'.repeat(513)))[1], 'ARGUMENT_TOO_LARGE');
  worker.send('CAN_DO', 'x'.repeat(512));
  await site.submit('x'.repeat(512));
  assert.equal((await worker.ask('GRAB_JOB'))[0], 'JOB_ASSIGN');
});

test('a job ends with WORK_COMPLETE that lacks the NUL before empty data, as Perl sends it', async (t) => {
  const site = await JobServerSite.start(t);
  const worker = await site.worker('f');
  const [client, handle] = await site.submit('f');
  await worker.ask('GRAB_JOB');
  const packet = encodePacket('REQ', 'WORK_COMPLETE', handle, '');
  packet.writeUInt32BE(handle.length, 8);
  worker.sendBytes(packet.subarray(0, -1));
  assert.deepEqual(await client.next(), ['WORK_COMPLETE', handle, '']);
  assert.deepEqual(await worker.ask('GRAB_JOB'), ['NO_JOB']);
});

test('CAN_DO_TIMEOUT with a timeout that is not decimal registers the function without a limit', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const site = await JobServerSite.start(t);
  const worker = await site.connect();
  for (const timeout of [Buffer.of(0, 0, 0x27, 0x10), '1e3', '-5', 'x', '9'.repeat(30), '']) {
    worker.send('CAN_DO_TIMEOUT', 'f', timeout);
    const [client, handle] = await site.submit('f');
    assert.deepEqual((await worker.ask('GRAB_JOB')).slice(0, 2), ['JOB_ASSIGN', handle]);
    t.mock.timers.tick(3_600_000);
    worker.send('WORK_COMPLETE', handle, 'done');
    assert.deepEqual(await client.next(), ['WORK_COMPLETE', handle, 'done']);
  }
});

test('progress that is not decimal counts as 0 in STATUS_RES', async (t) => {
  const site = await JobServerSite.start(t);
  const worker = await site.worker('f');
  const [client, handle] = await site.submit('f');
  await worker.ask('GRAB_JOB');
  for (const text of ['-1', '1e3', '0x10', ' 1', '9'.repeat(16)]) {
    worker.send('WORK_STATUS', handle, text, text);
    await client.until('WORK_STATUS');
    assert.deepEqual(await client.ask('GET_STATUS', handle), ['STATUS_RES', handle, '1', '1', '0', '0']);
  }
});
