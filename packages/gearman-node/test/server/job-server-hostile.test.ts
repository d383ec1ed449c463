import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { JobQueue } from '../../src/server/job-queue.ts';
import { encodePacket } from '../fixtures/encode-packet.ts';
import { JobServerSite, nextJob, settled } from '../fixtures/job-server-site.ts';
import { memoryInUse } from '../fixtures/memory-in-use.ts';
import type { RawPeer } from '../fixtures/raw-peer.ts';

const CROWD = 100;

/** Max memory in bytes of each of many clients: both ends of its connection, with their buffers. */
const COST = 256 * 1024;

/** Sends bytes one by one, each in a separate segment. */
async function sendSlowly(peer: RawPeer, bytes: Buffer): Promise<void> {
  for (const byte of bytes) {
    await new Promise((resolve) => peer.socket.write(Buffer.of(byte), resolve));
  }
}

/** Opens many connections that send the same bytes, and waits until the server has read them. */
async function crowd(site: JobServerSite, bytes: Buffer): Promise<RawPeer[]> {
  const peers = await Promise.all(Array.from({ length: CROWD }, () => site.connect()));
  const request = Buffer.concat([encodePacket('REQ', 'ECHO_REQ', ''), bytes]);
  for (const peer of peers) peer.sendBytes(request);
  await Promise.all(peers.map((peer) => peer.until('ECHO_RES')));
  return peers;
}

/** Returns the number of lines in a list of the server. */
async function countLines(peer: RawPeer, list: 'status' | 'workers'): Promise<number> {
  peer.sendBytes(`${list}\n`);
  let lines = 0;
  while ((await peer.next())[1] !== '.') lines += 1;
  return lines;
}

test('clients that never finish a packet do not delay others, and use little memory', async (t) => {
  const site = await JobServerSite.start(t);
  const beginning = encodePacket('REQ', 'SUBMIT_JOB', 'f', '', 'x'.repeat(60_000)).subarray(0, 30_000);
  const before = memoryInUse();
  const peers = await crowd(site, beginning);
  const each = (memoryInUse() - before) / CROWD;
  assert.ok(each < COST, `${each} bytes each`);

  const worker = await site.worker('f');
  const [client, handle] = await site.submit('f', 'quick');
  assert.deepEqual(await nextJob(worker), ['JOB_ASSIGN', handle, 'f', 'quick']);
  worker.send('WORK_COMPLETE', handle, '');
  assert.deepEqual(await client.next(), ['WORK_COMPLETE', handle, '']);
  for (const peer of peers) assert.equal(peer.socket.destroyed, false);
});

test('clients that declare a packet of 4 GiB get an ERROR and use little memory', async (t) => {
  const site = await JobServerSite.start(t);
  const beginning = encodePacket('REQ', 'SUBMIT_JOB', 'f', '', 'x'.repeat(100_000));
  beginning.writeUInt32BE(0xffff_ffff, 8);
  const before = memoryInUse();
  const peers = await crowd(site, beginning);
  for (const peer of peers)
    assert.deepEqual((await peer.next()).slice(0, 2), ['ERROR', 'ARGUMENT_TOO_LARGE']);
  const each = (memoryInUse() - before) / CROWD;
  assert.ok(each < COST, `${each} bytes each`);
});

test('a flood of admin commands is executed over many turns of the event loop', async (t) => {
  const site = await JobServerSite.start(t);
  const commands = 1000;
  const executed = { all: 0, inTurn: 0, maxInTurn: 0 };
  t.mock.getter(JobQueue.prototype, 'jobs', () => {
    executed.all += 1;
    executed.inTurn += 1;
    executed.maxInTurn = Math.max(executed.maxInTurn, executed.inTurn);
    const end = performance.now() + 0.2;
    while (performance.now() < end); // as long as it takes to list some hundred jobs
    return [];
  });
  const operator = await site.connect();
  operator.sendBytes('show jobs\n'.repeat(commands));
  while (executed.all < commands) {
    await turn();
    executed.inTurn = 0;
  }
  assert.ok(executed.maxInTurn <= 6, `${executed.maxInTurn} were executed in one turn`);
});

test('memory that many hostile peers used is released when they are gone', async (t) => {
  const site = await JobServerSite.start(t);
  const quiet = await site.connect();
  const attack = async (): Promise<void> => {
    const job = encodePacket('REQ', 'SUBMIT_JOB', 'f', '', Buffer.alloc(200_000));
    const peers = await crowd(site, Buffer.concat([job, job.subarray(0, 100_000)]));
    const deaf = await site.connect();
    deaf.socket.pause();
    deaf.sendBytes(Buffer.concat(Array.from({ length: 100 }, () => encodePacket('REQ', 'ECHO_REQ', job))));
    deaf.sendBytes(Buffer.from('status\nshow jobs\nworkers\n'.repeat(1000)));
    for (let index = 0; index < 10_000; index += 1) deaf.send('CAN_DO', `function ${index}`);
    await Promise.all(peers.map((peer) => peer.close()));
    await deaf.close();
    // The server notices each departure separately. The list contains the connection that requests it.
    while ((await countLines(quiet, 'workers')) > 1 || (await countLines(quiet, 'status')) > 0);
  };
  await attack(); // compiles the code
  await settled(quiet);
  const before = memoryInUse();
  await attack();
  await settled(quiet);
  const kept = memoryInUse() - before;
  assert.ok(kept < 2 * 1024 * 1024, `${kept} bytes are still in use`);
});

test('a job sent one byte at a time ends normally while other peers are served', async (t) => {
  const site = await JobServerSite.start(t);
  const [client, worker, other] = [await site.connect(), await site.connect(), await site.connect()];
  await sendSlowly(worker, encodePacket('REQ', 'CAN_DO', 'f'));
  await sendSlowly(client, encodePacket('REQ', 'SUBMIT_JOB', 'f', '', 'slow'));
  const [, handle = ''] = await client.next();
  await sendSlowly(worker, encodePacket('REQ', 'GRAB_JOB'));
  assert.deepEqual(await worker.next(), ['JOB_ASSIGN', handle, 'f', 'slow']);
  assert.deepEqual(await settled(other), []);
  await sendSlowly(worker, encodePacket('REQ', 'WORK_COMPLETE', handle, 'done'));
  assert.deepEqual(await client.next(), ['WORK_COMPLETE', handle, 'done']);
  await sendSlowly(client, Buffer.from('version\n'));
  assert.match((await client.next())[1] ?? '', /^OK /);
});

test('a worker that ends its sending side is lost, and another one gets its job', async (t) => {
  const site = await JobServerSite.start(t);
  const gone = await site.worker('f');
  const [client, handle] = await site.submit('f');
  await gone.ask('GRAB_JOB');
  gone.socket.end(); // but continues reading
  await gone.closed;
  const worker = await site.worker('f');
  assert.deepEqual(await nextJob(worker), ['JOB_ASSIGN', handle, 'f', '']);
  client.socket.end();
  await client.closed;
  worker.send('WORK_COMPLETE', handle, 'for nobody');
  assert.deepEqual(await settled(worker), []);
});
