import assert from 'node:assert/strict';
import { Client, JobServer, type ServerAddress, Worker, WorkFailError } from '@nodepool-builder/gearman-node';
import type { RawPeer } from '../../packages/gearman-node/test/fixtures/raw-peer.ts';
import type { FuzzTarget } from './fuzz.ts';
import { assertHonest } from './honest-error.ts';
import { type HostilePacket, hostilePackets } from './hostile-packets.ts';
import { HostileServer } from './hostile-server.ts';

const CONCURRENCY = 2;

/** A worker with a hostile and a normal job server: it keeps serving the normal one, and can be closed. */
export const workerTarget: FuzzTarget = {
  name: 'worker',
  open: async () => {
    const server = new JobServer();
    const address = await server.listen(0);
    const client = new Client({ servers: [address] });
    return {
      sessions: hostilePackets({
        magic: 'RES',
        connections: 1,
        maxPackets: 12,
        handles: ['H:1', 'H:2', 'H:3'],
        functions: ['echo', 'stream', 'fail', 'throw'],
        lines: [],
      }),
      run: (session) => attack(session, address, client),
      close: async () => {
        await client.close();
        await server.close();
      },
    };
  },
};

async function attack(
  session: readonly HostilePacket[],
  other: ServerAddress,
  client: Client,
): Promise<void> {
  const hostile = await HostileServer.listen();
  const worker = new Worker({
    servers: [hostile.address, other],
    concurrency: CONCURRENCY,
    maxPacketSize: 64 * 1024,
    reconnect: { minDelay: 60_000, maxDelay: 60_000 },
  });
  const errors: unknown[] = [];
  worker.on('disconnect', (_server, error) => errors.push(error));
  let running = 0;
  let most = 0;
  worker.setFunctions({
    echo: async ({ payload }) => {
      running += 1;
      most = Math.max(most, running);
      await new Promise((resolve) => setImmediate(resolve));
      running -= 1;
      return payload;
    },
    stream: async (job) => {
      job.sendStatus(1, 2);
      await job.sendData('piece');
      await job.sendWarning(job.payload);
    },
    fail: ({ function: name }) => {
      throw new WorkFailError(name);
    },
    throw: ({ payload }) => {
      throw new Error(payload.toString('latin1'));
    },
  });
  try {
    const server = await hostile.accepted;
    await serve(server, session);
    const jobs = Array.from({ length: 2 * CONCURRENCY }, () => client.submit('echo', 'still there'));
    for (const job of jobs) assert.equal(String(await job), 'still there');
    assert.ok(most <= CONCURRENCY, `${most} jobs ran at a time`);
  } finally {
    await worker.close();
  }
  errors.forEach(assertHonest);
}

/**
 * Sends packets, and then disconnects. Replies to a grab wait for a grab while the worker keeps up, because an
 * unexpected reply ends the connection.
 */
async function serve(server: RawPeer, session: readonly HostilePacket[]): Promise<void> {
  let isInStep = true;
  for (const { name, breaksFraming, bytes } of session) {
    const repliesToGrab = name.startsWith('JOB_ASSIGN') || name === 'NO_JOB';
    isInStep &&= !breaksFraming;
    if (repliesToGrab && isInStep && !(await grabbed(server))) break;
    server.sendBytes(bytes);
  }
  server.socket.end();
  await server.closed;
}

/** Waits for a grab, waking the worker if it sleeps. Returns false if the worker has disconnected. */
async function grabbed(server: RawPeer): Promise<boolean> {
  try {
    for (;;) {
      const [name = ''] = await server.next();
      if (name.startsWith('GRAB_JOB')) return true;
      if (name === 'PRE_SLEEP') server.send('NOOP');
    }
  } catch {
    return false;
  }
}
