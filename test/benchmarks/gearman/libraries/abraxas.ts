import type { Readable, Writable } from 'node:stream';
import type { NodeLibrary } from './node-library.ts';
import { requirePeer } from './peers.ts';

/** https://github.com/iarna/abraxas, which deregisters the wrong function. */
export const library: NodeLibrary = {
  work: (server, functionName, concurrency) => {
    const worker = requirePeer('abraxas').Client.connect({ ...server, maxJobs: concurrency });
    worker.registerWorker(functionName, (task: { payload: Buffer }) => task.payload);
  },

  connect: (server, functionName) => {
    const client = requirePeer('abraxas').Client.connect({ ...server });
    return (payload) => client.submitJob(functionName, payload);
  },

  decoder: (onPacket) => {
    const { Parser } = requirePeer('gearman-packet');
    const parser: Writable & Readable = new Parser();
    parser.on('data', ({ body }: { body: Readable }) => {
      body.on('end', onPacket);
      body.resume();
    });
    return (chunk) => void parser.write(chunk);
  },
};
