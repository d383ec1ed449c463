import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { Client, type JobHandler, Worker, WorkFailError } from '@nodepool-builder/gearman-node';

/** Starts our worker for a function `BEHAVIOUR:ANYTHING`. It prints the same lines as the peers' programs. */
export function startOurWorker(port: number, name: string, input: Readable, output: Writable): Worker {
  const lines = createInterface(input)[Symbol.asyncIterator]();
  const address = { host: '127.0.0.1', port };
  const behaviours: Readonly<Record<string, JobHandler>> = {
    ...BEHAVIOURS,
    held: async (job) => {
      output.write(`job ${job.payload.toString('hex')}\n`);
      await lines.next();
      return 'done';
    },
    split: async (job) => {
      const client = new Client({ servers: [address] });
      const words = job.payload.toString().split(' ');
      const results = await Promise.all(words.map((word) => client.submit(job.reducer, word)));
      await client.close();
      return Buffer.concat(results);
    },
  };
  const behaviour = behaviours[name.slice(0, name.indexOf(':'))];
  if (!behaviour) throw new Error(`unknown behaviour of ${name}`);
  const worker = new Worker({ servers: [address], takesReducers: name.startsWith('split:') });
  worker.add(name, behaviour);
  return worker;
}

const BEHAVIOURS: Readonly<Record<string, JobHandler>> = {
  echo: (job) => job.payload,
  empty: () => {},
  status: (job) => {
    job.sendStatus(1, 2);
    return 'done';
  },
  data: async (job) => {
    await job.sendData('part\0');
    return 'done';
  },
  warning: async (job) => {
    await job.sendWarning('part\0');
    return 'done';
  },
  fail: () => Promise.reject(new WorkFailError('as requested')),
  exception: () => Promise.reject(new Error('boom\0')),
};
