/**
 * Runs a manager in its own process. The arguments are the path of a store and the port of a job server. It responds to
 * `plan` with the milliseconds of a planning pass, to `group` with the milliseconds of the least possible pass, to
 * `manage` once it is the idle leader, and to `memory` with its peak memory in bytes.
 */
import { createInterface } from 'node:readline';
import { setFlagsFromString } from 'node:v8';
import type { ImageProvider, ProviderImage } from '@nodepool-builder/image-builder';
import { ImageManager, openStateStore, plan } from '@nodepool-builder/image-manager';
import { CONFIGURATION, listedImages } from './many-records.ts';

setFlagsFromString('--heap-growing-percent=30'); // as in the command nodepool-builder
const [path = '', port = ''] = process.argv.slice(2);
const store = await openStateStore(path);
const stop = new AbortController();
let managing: Promise<void> | undefined;

const ORDERS: Readonly<Record<string, () => Promise<unknown>>> = {
  plan: measurePlan,
  group: measureGrouping,
  manage: async () => {
    managing = manage();
    return 'managing';
  },
  memory: async () => process.resourceUsage().maxRSS * 1024,
};

for await (const order of createInterface(process.stdin)) console.log(await ORDERS[order]?.());
stop.abort(new Error('the benchmark ends'));
await managing;
await store.close();

async function measurePlan(): Promise<number> {
  const state = await store.read();
  const ids = new Set(state.builds.keys());
  const names = new Set(CONFIGURATION.diskimages.map(({ name }) => name));
  const world = {
    now: Date.now(),
    offered: { builds: names, uploads: ids, deletes: ids },
    inProgress: new Set<string>(),
    isComplete: true,
    absentSince: new Map<string, number>(),
    retryAt: new Map<string, number>(),
    requested: new Set<string>(),
  };
  const begin = performance.now();
  const { steps } = plan(CONFIGURATION, state, world);
  const time = performance.now() - begin;
  if (steps.length > 0) throw new Error(`the plan has ${steps.length} steps instead of none`);
  return time;
}

/** Least work of a pass: finds the uploads of each image, and of each image name in each provider. */
async function measureGrouping(): Promise<number> {
  const { uploads } = await store.read();
  const begin = performance.now();
  const byImage = Map.groupBy(uploads.values(), ({ imageId }) => imageId);
  const byProvider = Map.groupBy(uploads.values(), ({ provider }) => provider);
  let groups = byImage.size;
  for (const own of byProvider.values()) groups += Map.groupBy(own, ({ imageName }) => imageName).size;
  const time = performance.now() - begin;
  if (groups === 0) throw new Error('there are no uploads');
  return time;
}

async function manage(): Promise<void> {
  await new ImageManager({
    configuration: CONFIGURATION,
    provider: (name) => listedProvider(name),
    store,
    servers: [{ host: '127.0.0.1', port: Number(port) }],
    logger: { debug() {}, info() {}, warn: console.error, error: console.error },
  }).run(stop.signal);
}

/** Provider that lists the recorded uploads, as a cloud does. */
function listedProvider(name: string): ImageProvider {
  const list = async (): Promise<ProviderImage[]> => listedImages(name, store.owner);
  const unused = { upload: refuse, discard: refuse, delete: refuse, findImages: refuse };
  return { name, formats: ['qcow2'], ...unused, list };
}

async function refuse(): Promise<never> {
  throw new Error('unexpected call');
}
