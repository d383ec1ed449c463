import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PACKETS } from '../../src/packets.ts';
import { encodePacket } from '../fixtures/encode-packet.ts';
import { JobServerSite, nextJob, settled } from '../fixtures/job-server-site.ts';
import { randomBytes } from '../fixtures/random-bytes.ts';

function header(magic: string, type: number, length: number): Buffer {
  const bytes = Buffer.alloc(12);
  bytes.write(magic, 'latin1');
  bytes.writeUInt32BE(type, 4);
  bytes.writeUInt32BE(length, 8);
  return bytes;
}

/** Input that closes its connection, and the code of the ERROR sent before, if any. */
const FATAL: Readonly<Record<string, readonly [bytes: Buffer, code?: string]>> = {
  'an unknown magic': [header('\0XYZ', 1, 0)],
  'packet type 0': [header('\0REQ', 0, 0)],
  'an unknown packet type': [header('\0REQ', 43, 0)],
  'a packet length of 4 GiB': [header('\0REQ', 1, 0xffff_ffff), 'ARGUMENT_TOO_LARGE'],
  'a submission with one argument': [
    Buffer.concat([header('\0REQ', 7, 1), Buffer.from('f')]),
    'INVALID_PACKET',
  ],
  'an endless line': [Buffer.alloc(100_000, 'x'), 'ARGUMENT_TOO_LARGE'],
  'a status request for a handle with a NUL': [encodePacket('REQ', 'GET_STATUS', 'H\0:x')],
};

for (const [what, [bytes, code]] of Object.entries(FATAL)) {
  test(`a peer that sends ${what} loses only its own connection`, async (t) => {
    const site = await JobServerSite.start(t);
    const worker = await site.worker('f');
    const [client, handle] = await site.submit('f');
    await worker.ask('GRAB_JOB');

    const broken = await site.connect();
    broken.sendBytes(bytes);
    broken.send('SUBMIT_JOB', 'f', '', 'ignored');
    if (code !== undefined) assert.deepEqual((await broken.next()).slice(0, 2), ['ERROR', code]);
    await assert.rejects(broken.next());
    await broken.closed;

    worker.send('WORK_COMPLETE', handle, 'fine');
    assert.deepEqual(await client.next(), ['WORK_COMPLETE', handle, 'fine']);
    assert.deepEqual(await worker.ask('GRAB_JOB'), ['NO_JOB']);
  });
}

test('a packet with a server’s magic gets an ERROR, and the connection stays open', async (t) => {
  const site = await JobServerSite.start(t);
  const peer = await site.connect();
  peer.sendBytes(encodePacket('RES', 'ECHO_REQ', 'x'));
  assert.deepEqual((await peer.next()).slice(0, 2), ['ERROR', 'INVALID_MAGIC']);
  assert.deepEqual(await settled(peer), []);
});

test('packets that only a server sends or that no server supports get an ERROR', async (t) => {
  const site = await JobServerSite.start(t);
  const peer = await site.connect();
  const unserved = ['ALL_YOURS', 'SUBMIT_JOB_SCHED'] as const;
  const served = Object.entries(PACKETS)
    .filter(([, { senders }]) => senders.every((sender) => sender === 'server'))
    .map(([name]) => name as keyof typeof PACKETS);
  for (const name of [...served, ...unserved]) {
    const values = PACKETS[name].arguments.map(() => 'x');
    peer.sendBytes(encodePacket('REQ', name, ...(values as never)));
    assert.deepEqual((await peer.next()).slice(0, 2), ['ERROR', 'INVALID_COMMAND'], name);
  }
});

test('a server keeps serving after random bytes on many connections', async (t) => {
  const site = await JobServerSite.start(t);
  const client = await site.connect();
  for (let seed = 1; seed <= 60; seed += 1) {
    const peer = await site.connect();
    const noise = randomBytes(500, seed);
    if (seed % 2 === 0) header('\0REQ', (seed % 42) + 1, noise.length % 100).copy(noise);
    peer.sendBytes(noise);
    peer.socket.end();
    await peer.closed;
  }
  assert.deepEqual(await client.ask('ECHO_REQ', 'still there'), ['ECHO_RES', 'still there']);
});

test('a worker that sends a malformed packet during its job loses the job to another worker', async (t) => {
  const site = await JobServerSite.start(t);
  const broken = await site.worker('f');
  const [, handle] = await site.submit('f');
  await broken.ask('GRAB_JOB');
  broken.sendBytes(header('\0REQ', 99, 0));
  await broken.closed;
  const worker = await site.worker('f');
  assert.deepEqual(await nextJob(worker), ['JOB_ASSIGN', handle, 'f', '']);
});

test('an invalid number in a packet gets an ERROR without an effect, and the connection stays open', async (t) => {
  const site = await JobServerSite.start(t);
  const worker = await site.worker('f');
  const [client, handle] = await site.submit('f');
  await worker.ask('GRAB_JOB');
  worker.send('WORK_STATUS', handle, 1, 4);
  assert.deepEqual(await client.next(), ['WORK_STATUS', handle, '1', '4']);

  const refused = ['ERROR', 'INVALID_ARGUMENT'];
  assert.deepEqual((await client.ask('SUBMIT_JOB_EPOCH', 'g', '', 'x', '')).slice(0, 2), refused);
  assert.deepEqual(await client.ask('GET_STATUS', handle), ['STATUS_RES', handle, '1', '1', '1', '4']);

  worker.send('WORK_STATUS', handle, '0.5', 'Infinity');
  assert.deepEqual(
    await client.next(),
    ['WORK_STATUS', handle, '0.5', 'Infinity'],
    'the numbers of a worker are forwarded',
  );
  assert.deepEqual(await client.ask('GET_STATUS', handle), ['STATUS_RES', handle, '1', '1', '0', '0']);

  worker.send('WORK_COMPLETE', handle, 'fine');
  assert.deepEqual(await client.next(), ['WORK_COMPLETE', handle, 'fine']);
  client.sendBytes('status\n');
  assert.deepEqual(await client.next(), ['LINE', 'f\t0\t0\t1']);
});
