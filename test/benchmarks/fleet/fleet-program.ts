/**
 * Runs many builders in one process, each with a worker for builds and one for uploads and deletions, like the daemon.
 * The arguments are the port of a job server, the number of builders, and the number of images per builder. The workers
 * connect at once. Each line of input gets three numbers: the workers for builds whose functions the server has
 * confirmed, the same for the other workers, and the number of connections lost so far.
 */
import { createInterface } from 'node:readline';
import { Worker, type WorkerFunction } from '@nodepool-builder/gearman-node';
import { BUILD_FUNCTIONS, imageFunctions } from './fleet-functions.ts';

const [port = 0, builders = 0, images = 0] = process.argv.slice(2).map(Number);
const builds = new Set<Worker>();
const uploads = new Set<Worker>();
let lost = 0;

for (let builder = 0; builder < builders; builder += 1) {
  offer(BUILD_FUNCTIONS, builds);
  offer(imageFunctions(builder, images), uploads);
}
for await (const _ of createInterface(process.stdin)) console.log(`${builds.size} ${uploads.size} ${lost}`);
process.exit();

/** Keeps a worker in `confirmed` while the server has confirmed all its functions. */
function offer(names: readonly string[], confirmed: Set<Worker>): void {
  const worker = new Worker({ servers: [{ host: '127.0.0.1', port }] });
  let connection = 0;
  worker.on('connect', () => void confirm(++connection));
  worker.on('disconnect', () => {
    lost += 1;
    connection += 1;
    confirmed.delete(worker);
  });
  const confirm = async (connected: number): Promise<void> => {
    await worker.registered();
    if (connected === connection) confirmed.add(worker);
  };
  worker.setFunctions(new Map<string, WorkerFunction>(names.map((name) => [name, unasked])));
}

function unasked(): never {
  throw new Error('the benchmark submits no jobs');
}
