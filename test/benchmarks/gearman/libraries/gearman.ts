import type { NodeLibrary, Server } from './node-library.ts';
import { requirePeer } from './peers.ts';

const gearman = requirePeer('gearman');
const packetFactory = requirePeer('gearman/lib/packet-factory');

/** https://github.com/mreinstein/node-gearman, which only emits packets; users write the loop of a worker. */
export const library: NodeLibrary = {
  work: (server, functionName) => {
    const worker = gearman(server.host, server.port);
    worker.on('NOOP', () => worker.grabJob());
    worker.on('NO_JOB', () => worker.preSleep());
    worker.on('JOB_ASSIGN', (job: { handle: string; payload: Buffer }) => {
      worker.sendWorkComplete(job.handle, job.payload);
      worker.grabJob();
    });
    worker.connect(() => {
      worker.addFunction(functionName);
      worker.preSleep();
    });
  },

  connect: async (server, functionName) => {
    const client = await connected(server);
    // Only the handle identifies a job; handles arrive in the order of submission.
    const submitted: ((result: Buffer) => void)[] = [];
    const running = new Map<string, (result: Buffer) => void>();
    client.on('JOB_CREATED', (handle: string) => {
      const resolve = submitted.shift();
      if (resolve) running.set(handle, resolve);
    });
    client.on('WORK_COMPLETE', (job: { handle: string; payload: Buffer }) => {
      running.get(job.handle)?.(job.payload);
      running.delete(job.handle);
    });
    return (payload) =>
      new Promise((resolve) => {
        submitted.push(resolve);
        client.submitJob(functionName, payload);
      });
  },

  functions: async (server) => {
    const worker = await connected(server);
    return {
      register: (names) => names.forEach((name) => void worker.addFunction(name)),
      unregister: (names) => names.forEach((name) => void worker.removeFunction(name)),
    };
  },

  decoder: (onPacket) => {
    const factory = packetFactory();
    return (chunk) => factory.addBytes(chunk).forEach(onPacket);
  },
};

async function connected(server: Server) {
  const peer = gearman(server.host, server.port);
  await new Promise<void>((resolve) => peer.connect(resolve));
  return peer;
}
