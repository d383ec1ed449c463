import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { JobServer } from '@nodepool-builder/gearman-node';
import { settled } from '../../packages/gearman-node/test/fixtures/job-server-site.ts';
import { RawPeer } from '../../packages/gearman-node/test/fixtures/raw-peer.ts';
import type { FuzzTarget } from './fuzz.ts';
import { type HostilePacket, hostilePackets } from './hostile-packets.ts';

/** Number of concurrent hostile connections, of which one may grab another's jobs. */
const HOSTILE = 2;

/** A job server, whose other client and worker must not be disturbed. */
export const jobServerTarget: FuzzTarget = {
  name: 'job-server',
  open: async () => {
    const prefix = await handlePrefix();
    return {
      sessions: hostilePackets({
        magic: 'REQ',
        connections: HOSTILE,
        maxPackets: 120,
        // The first connection is the bystanders'.
        handles: [1, 2, 3, 4].map((number) => `${prefix}${number}`),
        functions: ['f', 'g'],
        lines: [
          'status',
          'workers',
          'prioritystatus',
          'show jobs',
          'show unique jobs',
          'version',
          'shutdown',
          'shutdown graceful',
          'maxqueue f 2',
          'maxqueue g -1 0 x',
          'create function f',
          'drop function g',
          `cancel job ${prefix}2`,
          'cancel job',
          '\xff\xfe status',
          'x'.repeat(9000),
        ],
      }),
      run: (session) => attack(session),
      close: async () => {},
    };
  },
};

/** Handle prefix of a new job server. */
async function handlePrefix(): Promise<string> {
  const server = new JobServer();
  const { port } = await server.listen(0);
  const peer = await RawPeer.connect(port);
  const [, handle = ''] = await peer.ask('SUBMIT_JOB', 'f', '', '');
  await peer.close();
  await server.close();
  return handle.replace(/\d+$/, '');
}

async function attack(session: readonly HostilePacket[]): Promise<void> {
  const faults: string[] = [];
  const server = new JobServer({ logger: faultLogger(faults), maxPacketSize: 64 * 1024 });
  const { port } = await server.listen(0);
  const client = await RawPeer.connect(port);
  const worker = await RawPeer.connect(port);
  try {
    const [, handle = ''] = await client.ask('SUBMIT_JOB', 'bystander', '', 'first');
    worker.send('CAN_DO', 'bystander');
    assert.equal((await worker.ask('GRAB_JOB'))[0], 'JOB_ASSIGN');

    await throwAt(port, session);

    worker.send('WORK_COMPLETE', handle, 'done');
    assert.deepEqual(await client.next(), ['WORK_COMPLETE', handle, 'done']);
    worker.send('PRE_SLEEP');
    const [, second = ''] = await client.ask('SUBMIT_JOB', 'bystander', '', 'second');
    assert.deepEqual(await worker.next(), ['NOOP']);
    assert.deepEqual(await worker.ask('GRAB_JOB'), ['JOB_ASSIGN', second, 'bystander', 'second']);
    assert.deepEqual(await settled(client), []);
    assert.deepEqual(faults, []);
  } finally {
    await Promise.all([client.close(), worker.close()]);
    await server.close();
  }
}

/** Sends packets in order, each over its connection. Resolves when the server has closed all connections. */
async function throwAt(port: number, session: readonly HostilePacket[]): Promise<void> {
  const sockets = await Promise.all(Array.from({ length: HOSTILE }, () => hostileSocket(port)));
  const closed = sockets.map((socket) => new Promise((resolve) => socket.once('close', resolve)));
  for (const { connection, bytes } of session) (sockets[connection] as Socket).write(bytes);
  for (const socket of sockets) socket.end();
  await Promise.all(closed);
}

async function hostileSocket(port: number): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true });
  await once(socket, 'connect');
  socket.on('error', () => {}); // the server may close the connection before all bytes are sent
  return socket.resume();
}

/** Records internal errors of the server, which only logs them and closes one connection. */
function faultLogger(faults: string[]) {
  const note = (message: string): void => {
    if (message.includes('caused an internal error')) faults.push(message);
  };
  return { debug: note, info: note, warn: note, error: note };
}
