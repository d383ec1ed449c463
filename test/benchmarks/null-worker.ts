/** Runs a worker whose jobs have an empty result. Arguments: gearmand's port and the function. */
import { Worker } from '@nodepool-builder/gearman-node';

const [port, functionName = ''] = process.argv.slice(2);
const worker = new Worker({ servers: [{ host: '127.0.0.1', port: Number(port) }] });
worker.add(functionName, () => {});
process.once('SIGTERM', () => void worker.close());
