import type { ServerAddress } from '@nodepool-builder/gearman-node';
import type { Build, ManagerState, StateStore, Upload } from '@nodepool-builder/image-manager';
import type { RunningJob } from '../protocol/running-job.ts';
import { CommandError, usageError } from '../terms/command-error.ts';
import { readSite } from './builder-status.ts';
import { cancelJob } from './control-jobs.ts';
import { requireManager, serveRequest } from './served-request.ts';

/**
 * Stops a build or an upload at its builder, or has the manager withdraw one that waits.
 *
 * @param id image-id, upload-id, or name of a disk image
 * @param by user who cancels it: `root@host`
 * @param useStore opens the manager's store; resolves with undefined without a manager
 * @returns a description of what was cancelled
 * @throws CommandError `not-found`, `refused`, `unreachable`; GearmanError; StoreError
 */
export async function cancel(
  servers: readonly ServerAddress[],
  id: string,
  by: string,
  useStore: <T>(work: (store: StateStore) => Promise<T>) => Promise<T | undefined>,
): Promise<string> {
  const jobs = (await readSite(servers)).builders.flatMap((builder) => builder.jobs);
  const exact = jobs.filter((job) => idOf(job) === id);
  const [job, ...others] = exact.length > 0 ? exact : jobs.filter(({ diskimage }) => diskimage === id);
  if (job !== undefined && others.length > 0 && exact.length === 0) {
    const ids = [job, ...others].map(idOf).join(', ');
    throw usageError(`several builds of ${id} run; name one of them: ${ids}`);
  }
  if (job !== undefined) {
    await cancelJob(servers, job['image-id'], by, job['upload-id']);
    return `${job.kind} ${idOf(job)} is cancelled`;
  }
  const withdrawn = await useStore((store) => withdraw(store, id, by));
  if (withdrawn !== undefined) return withdrawn;
  const remedy = 'compare the id with "dib-image-list" and "image-list"';
  throw new CommandError(`no builder runs a build or an upload with the id ${id}; ${remedy}`, 'not-found');
}

function idOf(job: RunningJob): string {
  return job['upload-id'] ?? job['image-id'];
}

/** Has the manager withdraw a waiting build or upload. Returns undefined if none of this name waits. */
async function withdraw(store: StateStore, id: string, by: string): Promise<string | undefined> {
  const [found] = recordsOf(await store.read(), id).filter(isPending);
  const isRequested = (await store.requests()).some(
    ({ request }) => request.kind === 'build' && request.diskimage === id,
  );
  if (found === undefined && !isRequested) return undefined;
  await requireManager(store);
  return await serveRequest(store, { kind: 'cancel', id, by }, (state, isUnserved) => {
    const record = found && recordsOf(state, found.id)[0];
    return isUnserved || (record && isPending(record)) ? undefined : outcomeOf(record, id);
  });
}

function recordsOf({ builds, uploads }: ManagerState, id: string): readonly (Build | Upload)[] {
  const ofBuilds = [...builds.values()].filter((build) => build.id === id || build.diskimage === id);
  return [...ofBuilds, ...[...uploads.values()].filter((upload) => upload.id === id)];
}

function isPending({ state }: Build | Upload): boolean {
  return state === 'building' || state === 'uploading';
}

/** @throws CommandError `refused` if it has ended in another way */
function outcomeOf(record: Build | Upload | undefined, id: string): string {
  if (record === undefined) return `the requested build of ${id} is cancelled`;
  const what = `${'imageId' in record ? 'upload' : 'build'} ${record.id}`;
  if (record.cancelledBy !== undefined) return `${what} is cancelled`;
  throw new CommandError(`${what} ended before it could be cancelled: it is ${record.state}`, 'refused');
}
