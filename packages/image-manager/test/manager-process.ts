/**
 * Runs a manager, which stops on a message from the parent; no open handle may then keep the process alive. The
 * arguments are the path of a store and the port of a job server.
 */
import { once } from 'node:events';
import { ImageManager, openStateStore } from '@nodepool-builder/image-manager';

const [path = '', port = ''] = process.argv.slice(2);
const store = await openStateStore(path);
const manager = new ImageManager({
  configuration: {
    diskimages: [{ name: 'debian', digest: 'first', pause: false, keep: 2, buildTimeout: 3600 }],
    providers: [],
    timing: { retryDelay: 60, maxRetryDelay: 3600, orphanScanInterval: 600, absenceTimeout: 1800 },
  },
  provider: () => undefined,
  store,
  servers: [{ host: '127.0.0.1', port: Number(port) }],
  logger: { debug() {}, info() {}, warn() {}, error() {} },
});
const stop = new AbortController();
const done = manager.run(stop.signal);
await once(process, 'message');
stop.abort(new Error('the parent stopped the manager'));
await done;
await store.close();
process.disconnect();
