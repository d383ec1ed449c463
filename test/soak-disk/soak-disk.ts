import { readdir } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { openStack } from '../fixtures/openstack/openstack.ts';
import { waitUntil } from '../fixtures/wait-until.ts';
import { type Disturbances, disturb } from './disturbances.ts';
import { findFaults, unsealed } from './find-faults.ts';
import { DiskSoakSite } from './soak-site.ts';

/** Milliseconds between two checks. */
const INTERVAL = 1000;

/** Durations of the soak. */
export interface DiskSoakPlan {
  /** Duration of the disturbances in milliseconds. */
  readonly duration: number;
  /** Time limit in milliseconds, after the disturbances, until everything must match the records. */
  readonly settlingTime: number;
}

/** Progress of the soak. */
export interface DiskSoakProgress extends Readonly<Disturbances> {
  readonly seconds: number;
  /** Number of started builds. */
  readonly builds: number;
  /** Number of checks of the files that the pools and images-dir offered. */
  readonly looks: number;
}

/** Result of the soak. */
export interface DiskSoakReport extends DiskSoakProgress {
  readonly settlingSeconds: number;
  /** A sentence for each difference from the records, and for each incomplete file that was offered. */
  readonly faults: readonly string[];
}

/**
 * Makes a site build and upload continuously while its daemon is killed and stopped, its disks are filled and frozen,
 * and its clock is shifted. Then each image must be rebuilt at its age, and all images must be on record.
 *
 * @param signal ends the soak early, with everything that it started
 */
export async function soakDisk(
  plan: DiskSoakPlan,
  onProgress: (progress: DiskSoakProgress) => void,
  signal: AbortSignal,
): Promise<DiskSoakReport> {
  const site = await DiskSoakSite.create(await (await openStack()).createAccount());
  try {
    const begun = performance.now();
    const counts: Disturbances = { kills: 0, fills: 0, freezes: 0, stops: 0, clockSteps: 0 };
    const incomplete = new Set<string>();
    let looks = 0;
    const progress = async (): Promise<DiskSoakProgress> => ({
      ...counts,
      seconds: (performance.now() - begun) / 1000,
      builds: lastNumber(await site.list('dib-image-list')),
      looks,
    });
    site.start();
    // A kill before that would leave no records to compare with.
    await waitUntil(
      'the first build',
      async () => lastNumber(await site.list('dib-image-list').catch(() => [])) > 0,
    );
    const over = AbortSignal.any([signal, AbortSignal.timeout(plan.duration)]);
    const watching = (async (): Promise<void> => {
      for (; !over.aborted; looks += 1) {
        for (const fault of await offeredIncomplete(site)) incomplete.add(fault);
        if (looks % 5 === 0) await progress().then(onProgress, () => undefined);
        await delay(INTERVAL, undefined, { signal: over }).catch(() => undefined);
      }
    })();
    await Promise.all([disturb(site, counts, over), watching]);
    signal.throwIfAborted();

    await site.end('SIGKILL');
    site.start();
    const calm = performance.now();
    const settle = async (look: () => Promise<readonly string[]>): Promise<readonly string[]> => {
      for (;;) {
        const faults = await look().catch((error: Error) => [error.message]);
        if (faults.length === 0 || performance.now() - calm > plan.settlingTime) return faults;
        await delay(INTERVAL, undefined, { signal });
      }
    };
    const before = new Set((await site.list('dib-image-list')).map((build) => build['image-id']));
    const overdue = await settle(async () => {
      const fresh = (await site.list('dib-image-list')).filter((build) => !before.has(build['image-id']));
      return site.images
        .filter((name) => !fresh.some(({ diskimage, state }) => diskimage === name && state === 'ready'))
        .map((name) => `${name} is not rebuilt, though it is old enough`);
    });
    await site.stopRebuilding();
    await site.end('SIGKILL');
    site.start();
    const faults = [...overdue, ...(await settle(() => findFaults(site)))];
    return {
      ...(await progress()),
      settlingSeconds: (performance.now() - calm) / 1000,
      faults: [...incomplete, ...faults],
    };
  } finally {
    await site.remove();
  }
}

/** Returns incomplete images under their public names, on any disk. */
async function offeredIncomplete(site: DiskSoakSite): Promise<readonly string[]> {
  const faults = await Promise.all(
    site.disks.map(async ({ directory }) =>
      unsealed(
        directory,
        (await readdir(directory)).filter((name) => !name.startsWith('.') && name.endsWith('.raw')),
      ),
    ),
  );
  return faults.flat();
}

/** Builds and uploads share a sequence of numbers. A build’s number is part of its id. */
function lastNumber(builds: readonly Readonly<Record<string, string | null>>[]): number {
  return Math.max(0, ...builds.map((build) => Number(/-(\d{10})-/.exec(build['image-id'] ?? '')?.[1] ?? 0)));
}
