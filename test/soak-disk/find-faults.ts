import { lstat, readdir, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { Admin } from '@nodepool-builder/gearman-node';
import { isSealed } from './sealed-file.ts';
import { type DiskSoakSite, KEEP, type ListedRecord } from './soak-site.ts';

/** Our own directories in images-dir, which must be empty while no work is in progress. */
const WORK = ['staging', 'deletes', 'partials'];

/** Final states; records of deleted images stay for a while. */
const ENDED: ReadonlySet<string> = new Set(['ready', 'failed', 'deleted']);

/** Compares all files and cloud images with the manager's records. Returns a sentence for each difference. */
export async function findFaults(site: DiskSoakSite): Promise<readonly string[]> {
  const [builds, uploads] = await Promise.all([site.list('dib-image-list'), site.list('image-list')]);
  const [readyBuilds, readyUploads] = [ready(builds), ready(uploads)];
  const elsewhere = await Promise.all([
    imagesDirFaults(site, readyBuilds),
    ...site.pools.map((pool, index) =>
      poolFaults(site, pool.directory, of(readyUploads, `pool-${index + 1}`)),
    ),
    glanceFaults(site, of(readyUploads, 'glance')),
    jobFaults(site),
  ]);
  return [
    ...unfinished([...builds, ...uploads]),
    ...wrongCounts(site, readyBuilds, readyUploads),
    ...elsewhere.flat(),
  ];
}

function ready(records: readonly ListedRecord[]): ListedRecord[] {
  return records.filter(({ state }) => state === 'ready');
}

function of(uploads: readonly ListedRecord[], name: string): ListedRecord[] {
  return uploads.filter(({ provider }) => provider === name);
}

function unfinished(records: readonly ListedRecord[]): string[] {
  return records
    .filter(({ state }) => !ENDED.has(state ?? ''))
    .map((record) => `${record['upload-id'] ?? record['image-id']} is ${record.state}`);
}

function wrongCount(place: string, name: string, { length }: readonly ListedRecord[]): string[] {
  return length === KEEP ? [] : [`${place}: ${length} good images ${name}, not ${KEEP}`];
}

function wrongCounts(
  { images, pools }: DiskSoakSite,
  builds: readonly ListedRecord[],
  uploads: readonly ListedRecord[],
): string[] {
  const providers = [...pools.map((_, index) => `pool-${index + 1}`), 'glance'];
  return images.flatMap((name) => [
    ...wrongCount(
      'builders',
      name,
      builds.filter(({ diskimage }) => diskimage === name),
    ),
    ...providers.flatMap((provider) =>
      wrongCount(
        provider,
        name,
        of(uploads, provider).filter((upload) => upload['image-name'] === name),
      ),
    ),
  ]);
}

/** Checks that images-dir contains the files of the good builds, all complete, and no unfinished work. */
async function imagesDirFaults(site: DiskSoakSite, builds: readonly ListedRecord[]): Promise<string[]> {
  const { directory } = site.imagesDir;
  const state = join(directory, '.nodepool-builder');
  const found = (await readdir(directory)).filter((name) => name.endsWith('.raw'));
  const left = await Promise.all(
    WORK.map(async (name) =>
      (await readdir(join(state, name)).catch(() => [])).map(
        (entry) => `images-dir: ${name}/${entry} is left`,
      ),
    ),
  );
  return [
    ...difference('images-dir', new Set(found), new Set(builds.map((build) => `${build['image-id']}.raw`))),
    ...(await unsealed(directory, found)),
    ...left.flat(),
  ];
}

/** Checks that a pool contains only the good uploads, their manifests, links to the newest, and no hidden files. */
async function poolFaults(
  { images }: DiskSoakSite,
  directory: string,
  uploads: readonly ListedRecord[],
): Promise<string[]> {
  const ids = uploads.map((upload) => String(upload['external-id']));
  const links = images.map((name) => `${name}-latest.raw`);
  const wanted = new Set([...ids, ...ids.map((id) => `${id}.json`), ...links]);
  const newest = await Promise.all(
    images.map(async (name) => {
      const [last] = uploads
        .filter((upload) => upload['image-name'] === name)
        .toSorted((a, b) => String(b['image-id']).localeCompare(String(a['image-id'])));
      const target = await readlink(join(directory, `${name}-latest.raw`)).catch(() => 'nothing');
      return target === last?.['external-id']
        ? []
        : [`${directory}: ${name}-latest is ${target}, not ${last?.['external-id']}`];
    }),
  );
  return [
    ...difference(directory, new Set(await readdir(directory)), wanted),
    ...(await unsealed(directory, ids)),
    ...newest.flat(),
  ];
}

async function glanceFaults({ account }: DiskSoakSite, uploads: readonly ListedRecord[]): Promise<string[]> {
  const images = await account.images();
  const states = images
    .filter(({ status }) => status !== 'active')
    .map(({ id, status }) => `glance: image ${id} is ${status}`);
  const ids = new Set(uploads.map((upload) => String(upload['external-id'])));
  return [...states, ...difference('glance', new Set(images.map(({ id }) => id)), ids)];
}

async function jobFaults({ port }: DiskSoakSite): Promise<string[]> {
  const admin = new Admin({ host: '127.0.0.1', port });
  try {
    const jobs = (await admin.status()).filter(({ total }) => total > 0);
    return jobs.map(({ name, total }) => `${total} jobs of ${name} are left`);
  } finally {
    await admin.close();
  }
}

/** Returns incomplete files under an image's name. Files may disappear during the search. */
export async function unsealed(directory: string, names: readonly string[]): Promise<string[]> {
  const faults = await Promise.all(
    names.map(async (name) => {
      const path = join(directory, name);
      const isWhole = await isSealed(path).catch((error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT') return true;
        throw error;
      });
      return isWhole ? [] : [`${path} is not complete (${(await lstat(path)).size} bytes)`];
    }),
  );
  return faults.flat();
}

function difference(place: string, found: ReadonlySet<string>, wanted: ReadonlySet<string>): string[] {
  return [
    ...[...wanted].filter((name) => !found.has(name)).map((name) => `${place}: ${name} is missing`),
    ...[...found]
      .filter((name) => !wanted.has(name))
      .map((name) => `${place}: ${name} is there, and in no record`),
  ];
}
