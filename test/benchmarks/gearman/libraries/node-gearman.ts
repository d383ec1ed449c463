import type { EventEmitter } from 'node:events';
import type { NodeLibrary } from './node-library.ts';
import { requirePeer } from './peers.ts';

const Gearman = requirePeer('node-gearman');

/** https://github.com/andris9/node-gearman, which cannot deregister a function. */
export const library: NodeLibrary = {
  work: (server, functionName) => {
    new Gearman(server.host, server.port).registerWorker(functionName, echo);
  },

  connect: (server, functionName) => {
    const client = new Gearman(server.host, server.port);
    return (payload) =>
      new Promise((resolve, reject) => {
        const job: EventEmitter = client.submitJob(functionName, payload);
        job.on('data', resolve);
        job.on('error', reject);
      });
  },

  decoder: (onPacket) => {
    const peer = new Gearman();
    peer.receive_JOB_ASSIGN_UNIQ = onPacket;
    return (chunk) => peer.receive(chunk);
  },
};

function echo(payload: Buffer, worker: { end: (result: Buffer) => void }): void {
  worker.end(payload);
}
