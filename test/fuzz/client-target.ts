import assert from 'node:assert/strict';
import { Client, JobServer, type ServerAddress, Worker } from '@nodepool-builder/gearman-node';
import type { FuzzTarget } from './fuzz.ts';
import { assertHonest } from './honest-error.ts';
import { type HostilePacket, hostilePackets } from './hostile-packets.ts';
import { HostileServer } from './hostile-server.ts';

/** A client whose first job server is hostile: each promise settles, and the client continues with the next server. */
export const clientTarget: FuzzTarget = {
  name: 'client',
  open: async () => {
    const server = new JobServer();
    const address = await server.listen(0);
    const worker = new Worker({ servers: [address] });
    worker.add('echo', ({ payload }) => payload);
    return {
      sessions: hostilePackets({
        magic: 'RES',
        connections: 1,
        maxPackets: 60,
        handles: ['H:1', 'H:2', 'H:3'],
        functions: ['echo'],
        lines: [],
      }),
      run: (session) => attack(session, address),
      close: async () => {
        await worker.close();
        await server.close();
      },
    };
  },
};

async function attack(session: readonly HostilePacket[], other: ServerAddress): Promise<void> {
  const hostile = await HostileServer.listen();
  const client = new Client({ servers: [hostile.address, other], maxPacketSize: 64 * 1024 });
  try {
    const read = client.submit('echo', 'one');
    const promises: PromiseLike<unknown>[] = [
      drained(read),
      read,
      client.submit('echo', 'two', { unique: 'u', onServerLost: 'resubmit' }),
      client.submit('echo', 'three', { background: true }).handle,
      client.status('H:1'),
      client.submit('echo', 'four', { priority: 'high' }),
    ];
    const settled = Promise.allSettled(promises);
    const server = await hostile.accepted;
    for (const { bytes } of session) server.sendBytes(bytes);
    server.socket.end();
    await server.closed;
    for (const outcome of await settled) if (outcome.status === 'rejected') assertHonest(outcome.reason);
    assert.equal(String(await client.submit('echo', 'still there')), 'still there');
  } finally {
    await client.close();
  }
}

async function drained(events: AsyncIterable<unknown>): Promise<number> {
  const all: unknown[] = [];
  for await (const event of events) all.push(event);
  return all.length;
}
