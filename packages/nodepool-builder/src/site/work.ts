import type { FunctionStatus } from '@nodepool-builder/gearman-node';
import { STATUS_PREFIX } from '../protocol/builder-status.ts';
import { subjectOf } from '../protocol/functions.ts';
import type { LocatedJob } from './builder-status.ts';

/** State of the manager's work at builders and job servers. */
export interface Work {
  /** Jobs by the image-id of a build, or by the upload-id of an upload. */
  readonly jobs: ReadonlyMap<string, LocatedJob>;
  /** Functions of all job servers that reply; undefined if none does. */
  readonly functions: readonly FunctionStatus[] | undefined;
  /** Ids of the images that builders offer; undefined if no job server replies. */
  readonly images: ReadonlySet<string> | undefined;
  /** Number of connected builders that do not reply. */
  readonly silent: number;
}

/**
 * @param functions undefined if no job server replies
 * @param replies number of builders that replied. Default: all
 */
export function workOf(jobs: Work['jobs'], functions: Work['functions'], replies?: number): Work {
  const connected = (functions ?? []).filter(
    ({ name, availableWorkers }) => name.startsWith(STATUS_PREFIX) && availableWorkers > 0,
  );
  const builders = new Set(connected.map(({ name }) => name)).size;
  const silent = Math.max(0, builders - (replies ?? builders));
  const offered = functions?.filter(
    ({ name, availableWorkers }) => availableWorkers > 0 && /^image-(?:upload|delete):/.test(name),
  );
  return { jobs, functions, images: offered && new Set(offered.map(({ name }) => subjectOf(name))), silent };
}

/** Describes connected builders that do not reply; undefined if all do. */
export function silenceOf({ silent }: Pick<Work, 'silent'>): string | undefined {
  if (silent === 0) return undefined;
  return silent === 1 ? 'a connected builder does not reply' : `${silent} connected builders do not reply`;
}

/** A build or an upload on record. */
interface Recorded<S extends string> {
  /** Image-id of a build, or upload-id. */
  readonly id: string;
  readonly state: S;
  /** Function of the Gearman job. */
  readonly job: string;
}

/**
 * Returns the state of a build or an upload, which is `queued` until a builder has started its job, and its progress,
 * or the subject of its wait.
 *
 * @param work undefined if no job server was queried
 */
export function standingOf<S extends string>({ id, state, job }: Recorded<S>, work: Work | undefined) {
  const located = work?.jobs.get(id);
  if (!/^(?:building|uploading)$/.test(state) || located || !work) return { state, ...progressOf(located) };
  const { isQueued, waiting } = waitOf(job, work);
  return { state: isQueued ? ('queued' as const) : state, ...progressOf(undefined), waiting };
}

/** Returns the fields of a record that show the progress of its job; each is null if it does not run. */
export function progressOf(job: LocatedJob | undefined) {
  return {
    percent: job?.percent ?? null,
    'bytes-per-second': job?.['bytes-per-second'] ?? null,
    'seconds-left': job?.['seconds-left'] ?? null,
    phase: job?.phase ?? null,
    waiting: job?.waiting ?? null,
    retrying: job?.retrying ?? null,
    'retry-at': job?.['retry-at'] ?? null,
    host: job?.host ?? null,
  };
}

/** Describes what a job waits for that no builder reports. The job is queued unless a builder may be running it. */
function waitOf(job: string, { jobs, functions, silent }: Work): { isQueued: boolean; waiting: string } {
  if (functions === undefined) return { isQueued: false, waiting: 'a reply from a job server' };
  const offers = functions.filter(({ name }) => name === job);
  const sum = (key: 'total' | 'running' | 'availableWorkers'): number =>
    offers.reduce((total, offer) => total + offer[key], 0);
  if (sum('total') === 0) return { isQueued: true, waiting: 'the manager to submit its job' };
  if (sum('total') === sum('running')) return { isQueued: false, waiting: 'a reply from its builder' };
  if (sum('availableWorkers') === 0) return { isQueued: true, waiting: `a builder that offers ${job}` };
  const builds = [...jobs.values()].filter(
    ({ kind, diskimages }) => kind === 'build' && diskimages.some((name) => job === `image-build:${name}`),
  );
  const [other, ...more] = builds;
  if (other === undefined) {
    const silence = silenceOf({ silent });
    return { isQueued: true, waiting: `a free builder${silence === undefined ? '' : `; ${silence}`}` };
  }
  const what =
    more.length > 0 ? `${builds.length} builds run` : `${other.host} is working on ${other['image-id']}`;
  return { isQueued: true, waiting: `a free builder; ${what}` };
}
