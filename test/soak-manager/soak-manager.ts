import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type ManagerState, openStateStore } from '@nodepool-builder/image-manager';
import { startGearmand } from '../fixtures/gearmand.ts';
import { CloudDouble } from './cloud-double.ts';
import { findFaults } from './find-faults.ts';
import { KilledProgram } from './killed-program.ts';
import type { SoakSettings } from './soak-settings.ts';

/** Number of builders and managers, so that one can take over from the other. */
const BUILDERS = 2;
const MANAGERS = 2;

/** Polling interval in milliseconds. */
const INTERVAL = 500;

/** Amount of work and of disturbances. */
export interface ManagerSoakPlan {
  readonly diskimages: number;
  readonly providers: number;
  /** Min number of rebuilds of everything. The soak continues until {@link kills} is reached. */
  readonly generations: number;
  /** Min number of kills of managers, and of builders. */
  readonly kills: number;
  /** Fraction of failing calls to clouds and builders, from 0 to 1. */
  readonly faultRate: number;
  /** Max lifetime of a builder or a manager, in milliseconds. */
  readonly maxLifetime: number;
  /** Time limit in milliseconds for reaching the wanted state after the last disturbance. */
  readonly settlingTime: number;
}

/** Progress. */
export interface ManagerSoakProgress {
  readonly generation: number;
  /** Number of ready uploads of this generation, and the total. */
  readonly done: number;
  readonly uploads: number;
  readonly calls: number;
  readonly faultyCalls: number;
  readonly builderKills: number;
  readonly managerKills: number;
  readonly seconds: number;
}

/** Result. */
export interface ManagerSoakReport extends ManagerSoakProgress {
  /** Seconds from the last disturbance to the wanted state or the time limit. */
  readonly settlingSeconds: number;
  /** A sentence for each difference from the wanted state, and for each lost last good image. */
  readonly faults: readonly string[];
}

/**
 * Builds and uploads everything several times while calls fail, and builders and managers are killed. Then checks the
 * result.
 *
 * @param signal ends it early, with everything that it started
 */
export async function soakManager(
  plan: ManagerSoakPlan,
  onProgress: (progress: ManagerSoakProgress) => void,
  signal: AbortSignal,
): Promise<ManagerSoakReport> {
  const opened: (() => Promise<void>)[] = [];
  try {
    const directory = await mkdtemp(join(tmpdir(), 'manager-soak-'));
    opened.push(() => rm(directory, { recursive: true, force: true }));
    const gearmand = await startGearmand();
    opened.push(() => gearmand.stop());
    const cloud = await CloudDouble.start(plan.faultRate);
    opened.push(() => cloud.stop());
    const store = await openStateStore(join(directory, 'state.sqlite'));
    opened.push(() => store.close());
    const { diskimages, providers, faultRate, maxLifetime } = plan;
    let settings: SoakSettings = {
      port: gearmand.port,
      cloud: cloud.url,
      store: join(directory, 'state.sqlite'),
      diskimages,
      providers,
      generation: 1,
      faultRate,
    };
    const settingsFile = join(directory, 'settings.json');
    const tell = async (change: Partial<SoakSettings>): Promise<void> => {
      settings = { ...settings, ...change };
      await writeFile(`${settingsFile}.new`, JSON.stringify(settings));
      await rename(`${settingsFile}.new`, settingsFile);
    };
    await tell({});

    const start = (program: string, name: string, ...args: readonly string[]): KilledProgram => {
      const log = join(directory, `${name}.log`);
      const killed = new KilledProgram({ program, args: [settingsFile, ...args], log, maxLifetime });
      opened.push(() => killed.stop());
      return killed;
    };
    const directories = Array.from({ length: BUILDERS }, (_, index) => join(directory, `builder-${index}`));
    for (const path of directories) await mkdir(path);
    const builders = directories.map((path, index) => start('builder-program.ts', `builder-${index}`, path));
    const managers = Array.from({ length: MANAGERS }, (_, index) =>
      start('manager-program.ts', `manager-${index}`),
    );

    const begun = performance.now();
    const progress = (state: ManagerState): ManagerSoakProgress => ({
      generation: settings.generation,
      done: uploadsOf(state, settings.generation),
      uploads: diskimages * providers,
      calls: cloud.calls,
      faultyCalls: cloud.faults,
      builderKills: sum(builders.map(({ kills }) => kills)),
      managerKills: sum(managers.map(({ kills }) => kills)),
      seconds: (performance.now() - begun) / 1000,
    });

    const needsKills = (): boolean =>
      [builders, managers].some((programs) => sum(programs.map(({ kills }) => kills)) < plan.kills);
    for (let generation = 1; generation <= plan.generations || needsKills(); generation += 1) {
      await tell({ generation }); // managers read the file at their next start
      for (
        let now = progress(await store.read());
        now.done < now.uploads;
        now = progress(await store.read())
      ) {
        onProgress(now);
        await delay(INTERVAL, undefined, { signal });
      }
    }

    cloud.faultRate = 0;
    await tell({ faultRate: 0 });
    for (const program of [...builders, ...managers]) program.spare();
    const spared = performance.now();
    const look = async (): Promise<readonly string[]> =>
      await findFaults({ settings, state: await store.read(), cloud, directories });
    let faults = await look();
    while (faults.length > 0 && performance.now() - spared < plan.settlingTime) {
      await delay(INTERVAL, undefined, { signal });
      faults = await look();
    }
    return {
      ...progress(await store.read()),
      settlingSeconds: (performance.now() - spared) / 1000,
      faults: [...faults, ...cloud.losses],
    };
  } finally {
    for (const close of opened.toReversed()) await close();
  }
}

/** Returns the number of ready uploads of this generation's builds. */
function uploadsOf({ builds, uploads }: ManagerState, generation: number): number {
  const ids = new Set(
    [...builds.values()]
      .filter(({ configuration }) => configuration === `generation ${generation}`)
      .map(({ id }) => id),
  );
  const ready = [...uploads.values()].filter(({ state, imageId }) => state === 'ready' && ids.has(imageId));
  return new Set(ready.map(({ diskimage, provider }) => `${diskimage} ${provider}`)).size;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
