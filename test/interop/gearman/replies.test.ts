import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { PACKETS, type PacketName } from '../../../packages/gearman-node/src/packets.ts';
import { encodePacket } from '../../../packages/gearman-node/test/fixtures/encode-packet.ts';
import type { RawPeer, Received } from '../../../packages/gearman-node/test/fixtures/raw-peer.ts';
import { SERVERS, type Site } from './site.ts';

/** Replies to packets without context. Packets that are not listed get none. */
const OUT_OF_THE_BLUE: Partial<Record<PacketName, Received>> = {
  SUBMIT_JOB: ['JOB_CREATED'],
  SUBMIT_JOB_HIGH: ['JOB_CREATED'],
  SUBMIT_JOB_LOW: ['JOB_CREATED'],
  SUBMIT_JOB_BG: ['JOB_CREATED'],
  SUBMIT_JOB_HIGH_BG: ['JOB_CREATED'],
  SUBMIT_JOB_LOW_BG: ['JOB_CREATED'],
  SUBMIT_JOB_EPOCH: ['JOB_CREATED'],
  SUBMIT_REDUCE_JOB: ['JOB_CREATED'],
  SUBMIT_REDUCE_JOB_BACKGROUND: ['JOB_CREATED'],
  SUBMIT_JOB_SCHED: ['ERROR', 'INVALID_COMMAND'],
  GET_STATUS: ['STATUS_RES', 'x', '0', '0', '0', '0'],
  GRAB_JOB: ['NO_JOB'],
  GRAB_JOB_UNIQ: ['NO_JOB'],
  GRAB_JOB_ALL: ['NO_JOB'],
  WORK_STATUS: ['ERROR', 'JOB_NOT_FOUND'],
  WORK_DATA: ['ERROR', 'JOB_NOT_FOUND'],
  WORK_WARNING: ['ERROR', 'JOB_NOT_FOUND'],
  WORK_COMPLETE: ['ERROR', 'JOB_NOT_FOUND'],
  WORK_FAIL: ['ERROR', 'JOB_NOT_FOUND'],
  WORK_EXCEPTION: ['ERROR', 'JOB_NOT_FOUND'],
  OPTION_REQ: ['ERROR', 'UNKNOWN_OPTION'],
  ALL_YOURS: ['ERROR', 'INVALID_COMMAND'],
  GET_STATUS_UNIQUE: ['STATUS_RES_UNIQUE', 'x'],
  ECHO_REQ: ['ECHO_RES', 'x'],
};

/** gearmand treats an invalid number as 0; the embedded server rejects it. */
const NUMBERS: readonly string[] = ['timeout', 'epoch'];

/** Returns the replies to everything that was sent. */
async function replies(peer: RawPeer): Promise<Received[]> {
  peer.send('ECHO_REQ', 'the end');
  const all: Received[] = [];
  for (;;) {
    const reply = await peer.next();
    if (reply[1] === 'the end') return all;
    all.push(reply);
  }
}

/** Creates a client with a foreground job of `f`, and the worker that runs it. */
async function runningJob({ connect }: Site): Promise<[client: RawPeer, worker: RawPeer, handle: string]> {
  const [client, worker] = [await connect(), await connect()];
  const [, handle = ''] = await client.ask('SUBMIT_JOB', 'f', 'key', 'data');
  worker.send('CAN_DO', 'f');
  assert.deepEqual(await worker.ask('GRAB_JOB_UNIQ'), ['JOB_ASSIGN_UNIQ', handle, 'f', 'key', 'data']);
  return [client, worker, handle];
}

for (const [server, start] of Object.entries(SERVERS)) {
  suite(`packets to ${server}`, () => {
    test('each packet type without context gets the documented reply', async (t) => {
      const { connect } = await start(t);
      for (const [name, { senders, arguments: names }] of Object.entries(PACKETS)) {
        const peer = await connect();
        const values = names.map((argument) => (NUMBERS.includes(argument) ? '1' : 'x'));
        peer.sendBytes(encodePacket('REQ', name as PacketName, ...(values as never)));
        const isOfServer = senders.every((sender) => sender === 'server');
        const expected = isOfServer ? ['ERROR', 'INVALID_COMMAND'] : OUT_OF_THE_BLUE[name as PacketName];
        const found = (await replies(peer)).map((reply) => reply.slice(0, expected?.length));
        assert.deepEqual(found, expected ? [expected] : [], name);
        await peer.close();
      }
    });

    test('a key of 65 bytes, an unknown option and a server’s magic get an ERROR and keep the connection', async (t) => {
      const peer = await (await start(t)).connect();
      peer.send('SUBMIT_JOB', 'f', 'x'.repeat(65), '');
      peer.send('OPTION_REQ', 'nonsense');
      peer.sendBytes(encodePacket('RES', 'GRAB_JOB'));
      const codes = (await replies(peer)).map(([name, code]) => `${name} ${code}`);
      assert.deepEqual(codes, ['ERROR ARGUMENT_TOO_LARGE', 'ERROR UNKNOWN_OPTION', 'ERROR INVALID_MAGIC']);
    });

    test('a malformed packet closes only its own connection', async (t) => {
      const { connect } = await start(t);
      const witness = await connect();
      const unknownMagic = encodePacket('REQ', 'PRE_SLEEP').fill('X', 1, 4);
      const unknownType = encodePacket('REQ', 'PRE_SLEEP').fill(43, 7, 8);
      for (const bytes of [unknownMagic, unknownType]) {
        const peer = await connect();
        peer.sendBytes(bytes);
        await peer.closed;
      }
      assert.deepEqual(await replies(witness), []);
    });

    test('a worker’s packets reach the client unchanged', async (t) => {
      const [client, worker, handle] = await runningJob(await start(t));
      worker.send('WORK_STATUS', handle, '1', '3');
      worker.send('WORK_DATA', handle, '\0\0');
      worker.send('WORK_WARNING', handle, '');
      worker.send('WORK_COMPLETE', handle, 'a\0b\0');
      assert.deepEqual(await client.until('WORK_COMPLETE'), [
        ['WORK_STATUS', handle, '1', '3'],
        ['WORK_DATA', handle, '\0\0'],
        ['WORK_WARNING', handle, ''],
        ['WORK_COMPLETE', handle, 'a\0b\0'],
      ]);
      worker.send('WORK_COMPLETE', handle, 'twice');
      assert.deepEqual(
        (await replies(worker)).map((reply) => reply[1]),
        ['JOB_NOT_FOUND'],
      );
      assert.deepEqual(await replies(client), []);
    });

    test('an exception reaches clients that requested exceptions, and others get WORK_FAIL', async (t) => {
      for (const asks of [true, false]) {
        const site = await start(t);
        const client = await site.connect();
        if (asks)
          assert.deepEqual(await client.ask('OPTION_REQ', 'exceptions'), ['OPTION_RES', 'exceptions']);
        const worker = await site.connect();
        const [, handle = ''] = await client.ask('SUBMIT_JOB', 'f', '', '');
        worker.send('CAN_DO', 'f');
        await worker.ask('GRAB_JOB');
        worker.send('WORK_EXCEPTION', handle, 'boom');
        assert.deepEqual(
          await client.next(),
          asks ? ['WORK_EXCEPTION', handle, 'boom'] : ['WORK_FAIL', handle],
        );
      }
    });

    test('a worker cannot end another worker’s job', async (t) => {
      const site = await start(t);
      const [client, worker, handle] = await runningJob(site);
      const stranger = await site.connect();
      stranger.send('WORK_COMPLETE', handle, 'forged');
      stranger.send('WORK_FAIL', handle);
      assert.deepEqual(
        (await replies(stranger)).map((reply) => reply[1]),
        ['JOB_NOT_FOUND', 'JOB_NOT_FOUND'],
      );
      worker.send('WORK_COMPLETE', handle, 'true');
      assert.deepEqual(await client.next(), ['WORK_COMPLETE', handle, 'true']);
    });

    test('a sleeping worker gets one NOOP for many jobs', async (t) => {
      const { connect } = await start(t);
      const [client, worker] = [await connect(), await connect()];
      worker.send('CAN_DO', 'f');
      worker.send('PRE_SLEEP');
      assert.deepEqual(await replies(worker), []);
      for (let jobs = 0; jobs < 3; jobs += 1) await client.ask('SUBMIT_JOB_BG', 'f', '', '');
      assert.deepEqual(await worker.next(), ['NOOP']);
      assert.deepEqual(await replies(worker), []);
    });
  });
}
