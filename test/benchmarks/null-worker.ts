/** A worker of the function `null` of the gearmand at the port that is its argument: its result is empty. */
import { Worker } from '@nodepool-builder/gearman-node';

const worker = new Worker({ servers: [{ host: '127.0.0.1', port: Number(process.argv[2]) }] });
worker.add('null', () => {});
process.once('SIGTERM', () => void worker.close());
