import { Client, Worker } from '@nodepool-builder/gearman-node';
import { PacketDecoder } from '../../../../packages/gearman-node/src/codec/decoder.ts';
import type { NodeLibrary } from './node-library.ts';

/** This project's library. */
export const library: NodeLibrary = {
  work: (server, functionName, concurrency) => {
    new Worker({ servers: [server], concurrency }).add(functionName, (job) => job.payload);
  },

  connect: (server, functionName) => {
    const client = new Client({ servers: [server] });
    return (payload) => client.submit(functionName, payload);
  },

  functions: (server) => {
    const worker = new Worker({ servers: [server] });
    return {
      register: (names) => worker.setFunctions(new Map(names.map((name) => [name, () => {}]))),
      unregister: () => worker.setFunctions({}),
    };
  },

  decoder: (onPacket) => {
    const decoder = new PacketDecoder({ onPacket });
    return (chunk) => decoder.decode(chunk);
  },
};
