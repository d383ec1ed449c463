import type { EventEmitter } from 'node:events';
import type { NodeLibrary } from './node-library.ts';
import { requirePeer } from './peers.ts';

// It logs every connection, and formats debug messages even if they are not shown.
const winston = requirePeer('winston');
winston.level = 'none';
for (const name of ['Client', 'Worker', 'Job', 'JobServer', 'LBStrategy', 'protocol']) {
  winston.loggers.add(name, { console: { silent: true, level: 'error' } });
}
const gearmanode = requirePeer('gearmanode');

interface WorkerJob {
  readonly payload: Buffer;
  workComplete(result: Buffer): void;
}

/** https://github.com/veny/GearmaNode, which fails if a chunk ends within the header of a packet. */
export const library: NodeLibrary = {
  work: (server, functionName) => {
    const worker = gearmanode.worker(server);
    worker.addFunction(functionName, (job: WorkerJob) => job.workComplete(job.payload));
  },

  connect: (server, functionName) => {
    const client = gearmanode.client(server);
    return (payload) =>
      new Promise((resolve, reject) => {
        const job: EventEmitter & { readonly response: Buffer } = client.submitJob(functionName, payload);
        job.on('complete', () => resolve(job.response));
        job.on('failed', () => reject(new Error('a job failed')));
      });
  },

  functions: (server) => {
    const worker = gearmanode.worker(server);
    return {
      register: (names) => names.forEach((name) => void worker.addFunction(name, () => {})),
      unregister: (names) => names.forEach((name) => void worker.removeFunction(name)),
    };
  },
};
