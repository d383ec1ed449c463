import type { EventEmitter } from 'node:events';
import type { NodeLibrary } from './node-library.ts';
import { requirePeer } from './peers.ts';

const { Client, Gearman, Worker } = requirePeer('gearman-node');

/** https://github.com/Clever/gearman-node, whose workers have one function and one connection each. */
export const library: NodeLibrary = {
  work: (server, functionName) => {
    Reflect.construct(Worker, [functionName, echo, server]);
  },

  connect: (server, functionName) => {
    const client = new Client({ ...server });
    return (payload) =>
      new Promise((resolve, reject) => {
        const job: EventEmitter = client.submitJob(functionName, payload);
        job.on('complete', (_handle: string, result: Buffer) => resolve(result));
        job.on('fail', () => reject(new Error('a job failed')));
      });
  },

  decoder: (onPacket) => {
    const peer = new Gearman();
    peer.on('JOB_ASSIGN_UNIQ', onPacket);
    return (chunk) => peer.receive(chunk);
  },
};

function echo(payload: Buffer, worker: { complete: (result: Buffer) => void }): void {
  worker.complete(payload);
}
