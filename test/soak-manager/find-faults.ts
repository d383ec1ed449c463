import { readdir } from 'node:fs/promises';
import { Admin } from '@nodepool-builder/gearman-node';
import type { ManagerState } from '@nodepool-builder/image-manager';
import type { CloudDouble } from './cloud-double.ts';
import { diskimageNames, KEEP, providerNames, type SoakSettings } from './soak-settings.ts';

/** State that a soak left behind. */
export interface Scene {
  readonly settings: SoakSettings;
  readonly state: ManagerState;
  readonly cloud: CloudDouble;
  /** Each builder's `images-dir`. */
  readonly directories: readonly string[];
}

/** Compares clouds, builders, records and queue with the wanted state. Returns a sentence for each difference. */
export async function findFaults(scene: Scene): Promise<readonly string[]> {
  const wanted = newestBuilds(scene);
  return [
    ...cloudFaults(scene, wanted),
    ...(await builderFaults(scene, wanted)),
    ...recordFaults(scene.state),
    ...(await queueFaults(scene.settings.port)),
  ];
}

/** Returns the ids of the newest ready builds of each disk image. */
function newestBuilds({ settings, state }: Scene): ReadonlyMap<string, readonly string[]> {
  const ready = [...state.builds.values()].filter((build) => build.state === 'ready');
  const newestFirst = ready.toSorted((a, b) => b.requestedAt - a.requestedAt || (a.id < b.id ? 1 : -1));
  return new Map(
    diskimageNames(settings).map((name) => [
      name,
      newestFirst
        .filter(({ diskimage }) => diskimage === name)
        .slice(0, KEEP)
        .map(({ id }) => id),
    ]),
  );
}

function cloudFaults(
  { settings, cloud }: Scene,
  wanted: ReadonlyMap<string, readonly string[]>,
): readonly string[] {
  const expected = providerNames(settings).flatMap((provider) =>
    [...wanted].flatMap(([name, ids]) => ids.map((id) => `${provider}: ${name} of ${id}, whole`)),
  );
  const found = [...cloud.images.values()].map(
    ({ provider, imageName, imageId, isWhole }) =>
      `${provider}: ${imageName} of ${imageId}, ${isWhole ? 'whole' : 'half'}`,
  );
  return differences(expected, found);
}

/** An image that was built twice, because its first builder died, may exist in both builders. */
async function builderFaults(
  { directories }: Scene,
  wanted: ReadonlyMap<string, readonly string[]>,
): Promise<readonly string[]> {
  const files = await Promise.all(directories.map((directory) => readdir(directory)));
  const expected = [...wanted.values()].flat().map((id) => `builders: ${id}`);
  return differences(
    expected,
    [...new Set(files.flat())].map((id) => `builders: ${id}`),
  );
}

function recordFaults({ builds, uploads }: ManagerState): readonly string[] {
  const unsettled = ['building', 'uploading', 'deleting'];
  return [...builds.values(), ...uploads.values()]
    .filter((record) => unsettled.includes(record.state) || ('leftovers' in record && record.leftovers))
    .map(({ id, state }) => `record ${id} is still ${state}`);
}

/**
 * Returns functions with jobs that run or can still begin. Other jobs that gearmand lists are dead: they were
 * withdrawn, or their client left. gearmand does not assign them, and forgets them when a builder with their function
 * grabs a job, which does not happen for the functions of deleted images.
 */
async function queueFaults(port: number): Promise<readonly string[]> {
  const admin = new Admin({ host: '127.0.0.1', port });
  try {
    const functions = (await admin.status()).filter(({ total }) => total > 0);
    const canBegin = (await admin.showJobs()).some(({ ignored }) => !ignored);
    if (!canBegin && functions.every(({ running }) => running === 0)) return [];
    return functions.map(({ name, total }) => `gearmand: ${total} jobs of ${name} are left`);
  } finally {
    await admin.close();
  }
}

/** Returns missing and unwanted items, with multiplicity. */
function differences(expected: readonly string[], found: readonly string[]): readonly string[] {
  const counts = new Map<string, number>();
  for (const item of expected) counts.set(item, (counts.get(item) ?? 0) - 1);
  for (const item of found) counts.set(item, (counts.get(item) ?? 0) + 1);
  return [...counts].flatMap(([item, count]) => {
    if (count === 0) return [];
    return [`${item}: ${count < 0 ? 'it is missing' : `it is there ${count} times too often`}`];
  });
}
