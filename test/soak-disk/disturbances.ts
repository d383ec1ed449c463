import { setTimeout as delay } from 'node:timers/promises';
import type { SmallDisk } from './small-disk.ts';
import type { DiskSoakSite } from './soak-site.ts';

const DAY = 86_400_000;

/** Milliseconds by which the clock is shifted. */
const OFFSETS = [30 * DAY, 3_600_000, -DAY, -3_600_000] as const;

/** Number of each kind of disturbance. */
export interface Disturbances {
  kills: number;
  fills: number;
  freezes: number;
  stops: number;
  clockSteps: number;
}

/** A disturbance that lasts for a while. */
interface Disturbance {
  readonly counter: keyof Disturbances;
  readonly begin: () => Promise<void> | void;
  readonly end: () => Promise<void> | void;
}

/** Disturbs the site, also in several ways at once, until the signal aborts. Then stops all disturbances. */
export async function disturb(site: DiskSoakSite, counts: Disturbances, signal: AbortSignal): Promise<void> {
  await Promise.all([
    repeat(() => pick([fill, freeze])(pick(site.disks)), counts, signal),
    repeat(() => pick([clockStep, stop])(site), counts, signal),
    repeat(() => kill(site), counts, signal),
  ]);
}

/** Waits for a random time, because there is no event to wait for. */
async function repeat(next: () => Disturbance, counts: Disturbances, signal: AbortSignal): Promise<void> {
  const pause = (max: number): Promise<unknown> =>
    delay(500 + Math.random() * max, undefined, { signal }).catch(() => undefined);
  while (!signal.aborted) {
    await pause(8_000);
    if (signal.aborted) return;
    const { counter, begin, end } = next();
    await begin();
    counts[counter] += 1;
    try {
      await pause(4_000);
    } finally {
      await end();
    }
  }
}

function fill(disk: SmallDisk): Disturbance {
  return { counter: 'fills', begin: () => disk.fill(), end: () => disk.empty() };
}

function freeze(disk: SmallDisk): Disturbance {
  return { counter: 'freezes', begin: () => disk.freeze(), end: () => disk.thaw() };
}

function clockStep(site: DiskSoakSite): Disturbance {
  return {
    counter: 'clockSteps',
    begin: () => site.setClock(pick(OFFSETS)),
    end: () => site.setClock(0),
  };
}

function stop(site: DiskSoakSite): Disturbance {
  return { counter: 'stops', begin: () => site.signal('SIGSTOP'), end: () => site.signal('SIGCONT') };
}

/** Kills the daemon. A process that waits for a frozen disk dies only once the disk thaws. */
function kill(site: DiskSoakSite): Disturbance {
  return { counter: 'kills', begin: () => site.end('SIGKILL'), end: () => site.start() };
}

function pick<T>(choices: readonly T[]): T {
  return choices[Math.floor(Math.random() * choices.length)] as T;
}
