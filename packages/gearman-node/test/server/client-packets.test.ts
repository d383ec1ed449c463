// Not a unit test: it takes seconds.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { SUBMIT_PACKETS } from '../../src/submit-packets.ts';
import { encodePacket } from '../fixtures/encode-packet.ts';
import { JobServerSite, settled } from '../fixtures/job-server-site.ts';
import { memoryInUse } from '../fixtures/memory-in-use.ts';

test('each of the six submission packets gets a handle, and the jobs run by priority', async (t) => {
  const site = await JobServerSite.start(t);
  const client = await site.connect();
  for (const kind of ['foreground', 'background'] as const) {
    for (const priority of ['low', 'normal', 'high'] as const) {
      const [name, handle = ''] = await client.ask(
        SUBMIT_PACKETS[kind][priority],
        'f',
        '',
        `${kind} ${priority}`,
      );
      assert.equal(name, 'JOB_CREATED');
      assert.match(handle, /^H:.+:\d+$/);
    }
  }
  const worker = await site.worker('f');
  const order: (string | undefined)[] = [];
  for (let jobs = 0; jobs < 6; jobs += 1) order.push((await worker.ask('GRAB_JOB')).at(-1));
  assert.deepEqual(order, [
    'foreground high',
    'background high',
    'foreground normal',
    'background normal',
    'foreground low',
    'background low',
  ]);
});

test('a background job runs after its client has left, and the client gets no packets', async (t) => {
  const site = await JobServerSite.start(t);
  const client = await site.connect();
  const [, handle = ''] = await client.ask('SUBMIT_JOB_BG', 'f', '', '');
  const worker = await site.worker('f');
  await worker.ask('GRAB_JOB');
  worker.send('WORK_DATA', handle, 'x');
  worker.send('WORK_COMPLETE', handle, 'x');
  assert.deepEqual(await settled(worker), []);
  assert.deepEqual(await settled(client), []);
  assert.deepEqual(await client.ask('GET_STATUS', handle), ['STATUS_RES', handle, '0', '0', '0', '0']);
});

test('GET_STATUS follows a job from the queue to its end', async (t) => {
  const site = await JobServerSite.start(t);
  const [client, handle] = await site.submit('f');
  assert.deepEqual(await client.ask('GET_STATUS', handle), ['STATUS_RES', handle, '1', '0', '0', '0']);
  const worker = await site.worker('f');
  await worker.ask('GRAB_JOB');
  worker.send('WORK_STATUS', handle, 3, 7);
  assert.deepEqual(await client.next(), ['WORK_STATUS', handle, '3', '7']);
  assert.deepEqual(await client.ask('GET_STATUS', handle), ['STATUS_RES', handle, '1', '1', '3', '7']);
  worker.send('WORK_FAIL', handle);
  assert.deepEqual(await client.next(), ['WORK_FAIL', handle]);
  assert.deepEqual(await client.ask('GET_STATUS', handle), ['STATUS_RES', handle, '0', '0', '0', '0']);
});

test('GET_STATUS_UNIQUE includes the number of clients', async (t) => {
  const site = await JobServerSite.start(t);
  const [first, second] = [await site.connect(), await site.connect()];
  await first.ask('SUBMIT_JOB', 'f', 'key', '');
  await second.ask('SUBMIT_JOB', 'f', 'key', '');
  assert.deepEqual(await first.ask('GET_STATUS_UNIQUE', 'key'), [
    'STATUS_RES_UNIQUE',
    'key',
    '1',
    '0',
    '0',
    '0',
    '2',
  ]);
  assert.deepEqual((await first.ask('GET_STATUS_UNIQUE', 'other')).slice(2), ['0', '0', '0', '0', '0']);
});

test('jobs with the same key are coalesced, and all their clients get the handle and the result', async (t) => {
  const site = await JobServerSite.start(t);
  const [first, second] = [await site.connect(), await site.connect()];
  const [, handle = ''] = await first.ask('SUBMIT_JOB', 'f', 'key', 'a');
  assert.deepEqual(await second.ask('SUBMIT_JOB', 'f', 'key', 'b'), ['JOB_CREATED', handle]);
  const worker = await site.worker('f');
  assert.equal((await worker.ask('GRAB_JOB')).at(-1), 'a');
  assert.deepEqual(await worker.ask('GRAB_JOB'), ['NO_JOB']);
  worker.send('WORK_COMPLETE', handle, 'x');
  assert.deepEqual(await first.next(), ['WORK_COMPLETE', handle, 'x']);
  assert.deepEqual(await second.next(), ['WORK_COMPLETE', handle, 'x']);
});

test('a job with SUBMIT_JOB_EPOCH runs at its start time, or at once if that has passed', async (t) => {
  const now = Date.UTC(2026, 0, 1);
  t.mock.timers.enable({ apis: ['Date', 'setTimeout'], now });
  const site = await JobServerSite.start(t);
  const client = await site.connect();
  const worker = await site.worker('past', 'future');
  await client.ask('SUBMIT_JOB_EPOCH', 'past', '', 1, 'x');
  assert.equal((await worker.ask('GRAB_JOB')).at(-1), 'x');
  await client.ask('SUBMIT_JOB_EPOCH', 'future', '', now / 1000 + 1, 'y');
  assert.deepEqual(await worker.ask('GRAB_JOB'), ['NO_JOB']);
  worker.send('PRE_SLEEP');
  t.mock.timers.tick(999);
  assert.deepEqual(await settled(worker), [], 'the job does not start too early');
  t.mock.timers.tick(1);
  assert.deepEqual(await worker.next(), ['NOOP']);
  assert.equal((await worker.ask('GRAB_JOB')).at(-1), 'y');
});

test('a submission with an overlong name or key is rejected, and the connection stays open', async (t) => {
  const site = await JobServerSite.start(t);
  const client = await site.connect();
  assert.equal((await client.ask('SUBMIT_JOB', 'x'.repeat(513), '', ''))[1], 'ARGUMENT_TOO_LARGE');
  assert.equal((await client.ask('SUBMIT_JOB', 'f', 'x'.repeat(65), ''))[1], 'ARGUMENT_TOO_LARGE');
  assert.equal(
    (await client.ask('SUBMIT_REDUCE_JOB', 'f', '', 'x'.repeat(513), '', ''))[1],
    'ARGUMENT_TOO_LARGE',
  );
  assert.equal((await client.ask('SUBMIT_JOB', 'f', 'x'.repeat(64), ''))[0], 'JOB_CREATED');
});

test('a waiting job keeps its payload, but not the large chunk that contained it', async (t) => {
  const site = await JobServerSite.start(t);
  const client = await site.connect();
  const [jobs, chunk] = [100, 60_000];
  const before = memoryInUse();
  for (let submitted = 0; submitted < jobs; submitted += 1) {
    client.sendBytes(
      Buffer.concat([
        encodePacket('REQ', 'SUBMIT_JOB_BG', 'f', '', 'small'),
        encodePacket('REQ', 'OPTION_REQ', 'x'.repeat(chunk)),
      ]),
    );
    await client.until('ERROR');
  }
  // The garbage collector releases buffers in the background.
  let kept = jobs * chunk;
  for (let looks = 0; looks < 100 && kept > (jobs * chunk) / 4; looks += 1) {
    await delay(10);
    kept = memoryInUse() - before;
  }
  assert.ok(kept <= (jobs * chunk) / 4, `${kept} bytes are kept for ${jobs} small jobs`);
});

test('function names, keys and payloads may be any bytes', async (t) => {
  const site = await JobServerSite.start(t);
  const client = await site.connect();
  const worker = await site.connect();
  const name = Buffer.from([0xff, 0x20, 0xfe]);
  const key = Buffer.from([0x80, 0x0a]);
  const payload = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
  worker.send('CAN_DO', name);
  await client.ask('SUBMIT_JOB', name, key, payload);
  assert.deepEqual((await worker.ask('GRAB_JOB_UNIQ')).slice(2), [
    name.toString('latin1'),
    key.toString('latin1'),
    payload.toString('latin1'),
  ]);
});

test('GRAB_JOB_ALL returns the reducer; the aggregator is not part of the data', async (t) => {
  const site = await JobServerSite.start(t);
  const client = await site.connect();
  const worker = await site.worker('f');
  for (const name of ['SUBMIT_REDUCE_JOB_BACKGROUND', 'SUBMIT_REDUCE_JOB'] as const) {
    const [, handle = ''] = await client.ask(name, 'f', 'key', 'sum', 'aggregator', 'a\0b');
    assert.deepEqual(await worker.ask('GRAB_JOB_ALL'), ['JOB_ASSIGN_ALL', handle, 'f', 'key', 'sum', 'a\0b']);
    worker.send('WORK_COMPLETE', handle, '');
    await settled(worker);
  }
  assert.deepEqual(
    (await settled(client)).map(([name]) => name),
    ['WORK_COMPLETE'],
    'the background job has no client',
  );
});

test('a job scheduled by calendar is rejected with an error that names the alternative', async (t) => {
  const client = await (await JobServerSite.start(t)).connect();
  const [name, code, text = ''] = await client.ask('SUBMIT_JOB_SCHED', 'f', '', 0, 0, 1, 1, 1, '');
  assert.deepEqual([name, code], ['ERROR', 'INVALID_COMMAND']);
  assert.match(text, /SUBMIT_JOB_EPOCH/);
});

test('a job of low priority does not wait for one with a later start time', async (t) => {
  const site = await JobServerSite.start(t);
  const client = await site.connect();
  const worker = await site.worker('f');
  await client.ask('SUBMIT_JOB_EPOCH', 'f', '', Math.ceil(Date.now() / 1000) + 86_400, 'later');
  await client.ask('SUBMIT_JOB_LOW_BG', 'f', '', 'now');
  assert.equal((await worker.ask('GRAB_JOB')).at(-1), 'now');
  worker.send('PRE_SLEEP');
  assert.deepEqual(await settled(worker), [], 'no worker is woken for the other job');
});
