import type { FunctionStatus } from '@nodepool-builder/gearman-node';
import type { LocatedJob } from './builder-status.ts';

/** State of the manager's work at builders and job servers. */
export interface Work {
  /** Jobs by the image-id of a build, or by the upload-id of an upload. */
  readonly jobs: ReadonlyMap<string, LocatedJob>;
  /** Functions of all job servers that reply; undefined if none does. */
  readonly functions: readonly FunctionStatus[] | undefined;
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
 * @param work undefined if no builder was queried
 */
export function standingOf<S extends string>({ id, state, job }: Recorded<S>, work: Work | undefined) {
  const located = work?.jobs.get(id);
  const waiting = /^(?:building|uploading)$/.test(state) && !located ? waitOf(job, work) : undefined;
  if (waiting === undefined) return { state, ...progressOf(located) };
  return { state: 'queued' as const, ...progressOf(undefined), waiting };
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

/** Returns what a job waits for; undefined if a builder that does not reply may run it, or no job server replies. */
function waitOf(job: string, { jobs, functions }: Partial<Work> = {}): string | undefined {
  if (functions === undefined) return undefined;
  const offers = functions.filter(({ name }) => name === job);
  const sum = (key: 'total' | 'running' | 'availableWorkers'): number =>
    offers.reduce((total, offer) => total + offer[key], 0);
  if (sum('total') === 0) return 'the manager to submit its job';
  if (sum('total') === sum('running')) return undefined;
  if (sum('availableWorkers') === 0) return `a builder that offers ${job}`;
  const kind = job.startsWith('image-build:') ? 'build' : 'upload';
  const [other, ...more] = [...(jobs?.values() ?? [])].filter((one) => one.kind === kind);
  if (other === undefined) return 'a free builder';
  if (more.length > 0) return `a free builder; ${more.length + 1} ${kind}s run`;
  return `a free builder; ${other.host} is working on ${other['image-id']}`;
}
