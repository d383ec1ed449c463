// Not a unit test: it takes seconds.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encodePacket } from '../fixtures/encode-packet.ts';
import { JobServerSite, settled } from '../fixtures/job-server-site.ts';

const MIB = 1024 * 1024;

test('the slow peer with the most buffered bytes is disconnected if the common limit is exceeded', async (t) => {
  const warnings: string[] = [];
  const logger = { debug() {}, info() {}, warn: (text: string) => warnings.push(text), error: assert.fail };
  const site = await JobServerSite.start(t, { logger, maxTotalOutput: 20 * MIB });
  const worker = await site.worker('f');
  const clients = [await site.submit('f'), await site.submit('f'), await site.submit('f')];
  for (const [client] of clients) {
    await worker.ask('GRAB_JOB');
    client.socket.pause();
  }
  const [[most, ofMost], [less, ofLess], [none, ofNone]] = clients as [
    (typeof clients)[0],
    (typeof clients)[0],
    (typeof clients)[0],
  ];
  // Socket buffers hold a few MiB of each.
  for (let sent = 0; sent < 40 && warnings.length === 0; sent += 1) {
    worker.send('WORK_DATA', ofMost, Buffer.alloc(MIB));
    if (sent % 2 === 0) worker.send('WORK_DATA', ofLess, Buffer.alloc(MIB));
    await settled(worker);
  }
  assert.match(
    warnings.join(),
    /^127\.0\.0\.1:\d+ does not read: over 20971520 bytes are buffered for slow peers$/,
  );
  most.socket.resume();
  await most.closed;
  for (const [client, handle] of [
    [less, ofLess],
    [none, ofNone],
  ] as const) {
    client.socket.resume();
    worker.send('WORK_COMPLETE', handle, 'done');
    assert.deepEqual((await client.until('WORK_COMPLETE')).at(-1), ['WORK_COMPLETE', handle, 'done']);
  }
});

test('a single large reply to each slow peer counts towards maxTotalOutput', async (t) => {
  const warnings: string[] = [];
  const logger = { debug() {}, info() {}, warn: (text: string) => warnings.push(text), error: assert.fail };
  const site = await JobServerSite.start(t, { logger, maxTotalOutput: 20 * MIB });
  const reader = await site.connect();
  // Socket buffers hold a few MiB of each.
  for (let peers = 0; peers < 10 && warnings.length === 0; peers += 1) {
    const mute = await site.connect();
    mute.socket.pause();
    const payload = Buffer.alloc(12 * MIB);
    await new Promise((resolve) => mute.socket.write(encodePacket('REQ', 'ECHO_REQ', payload), resolve));
    await settled(reader);
  }
  assert.match(
    warnings[0] ?? 'no warning',
    /does not read: over 20971520 bytes are buffered for slow peers$/,
  );
});

test('clients of a server with the option exceptions get WORK_EXCEPTION without requesting it', async (t) => {
  const site = await JobServerSite.start(t, { exceptions: true });
  const worker = await site.worker('f');
  const [client, handle] = await site.submit('f');
  await worker.ask('GRAB_JOB');
  worker.send('WORK_EXCEPTION', handle, 'boom');
  assert.deepEqual(await client.next(), ['WORK_EXCEPTION', handle, 'boom']);
});
