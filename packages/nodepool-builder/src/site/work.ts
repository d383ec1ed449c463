import type { FunctionStatus } from '@nodepool-builder/gearman-node';
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
}

/** @param functions undefined if no job server replies */
export function workOf(jobs: Work['jobs'], functions: Work['functions']): Work {
  const offered = functions?.filter(
    ({ name, availableWorkers }) => availableWorkers > 0 && /^image-(?:upload|delete):/.test(name),
  );
  return { jobs, functions, images: offered && new Set(offered.map(({ name }) => subjectOf(name))) };
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
function waitOf(job: string, { jobs, functions }: Work): { isQueued: boolean; waiting: string } {
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
  if (other === undefined) return { isQueued: true, waiting: 'a free builder' };
  const what =
    more.length > 0 ? `${builds.length} builds run` : `${other.host} is working on ${other['image-id']}`;
  return { isQueued: true, waiting: `a free builder; ${what}` };
}
