import { Client, type FunctionStatus, type ServerAddress } from '@nodepool-builder/gearman-node';
import { type BuilderStatus, decodeBuilderStatus, STATUS_PREFIX } from '../protocol/builder-status.ts';
import { subjectOf } from '../protocol/functions.ts';
import type { RunningJob } from '../protocol/running-job.ts';
import { CommandError } from '../terms/command-error.ts';
import { askServers } from './ask-servers.ts';
import { explainDenial } from './control-jobs.ts';

/** Timeout of the job servers, and default timeout of all builders' replies, in milliseconds. */
const TIMEOUT = 5000;

/**
 * Queries the functions of the job servers and the status of all their builders. Builders that do not reply, such as
 * builders of a release without this function, are left out.
 *
 * @param timeout for the builders, once the job servers have replied, in milliseconds
 * @throws CommandError `refused` by a job server; ConnectionError `connect-failed` if no job server replies
 * @throws the signal's reason
 */
export async function readSite(
  servers: readonly ServerAddress[],
  signal?: AbortSignal,
  timeout: number = TIMEOUT,
): Promise<{ readonly builders: readonly BuilderStatus[]; readonly functions: readonly FunctionStatus[] }> {
  const functions = await askServers(
    servers,
    async (admin, server) => (await admin.status()).map((status) => ({ ...status, server })),
    signal,
    TIMEOUT,
  );
  const offered = functions.filter(
    ({ name, availableWorkers }) => name.startsWith(STATUS_PREFIX) && availableWorkers > 0,
  );
  // A builder is connected to each of its job servers, so the first one that lists it is queried.
  const builders = new Map(offered.toReversed().map((offer) => [offer.name, offer]));
  const limit = AbortSignal.any([AbortSignal.timeout(timeout), ...(signal === undefined ? [] : [signal])]);
  const replies = await Promise.all(
    Array.from(
      Map.groupBy(builders.values(), ({ server }) => server),
      async ([server, offers]) => {
        const client = new Client({ servers: [server], clientId: 'nodepool-builder status' });
        try {
          return await Promise.allSettled(
            offers.map(async ({ name }) => {
              const result = await client.submit(name, '', { signal: limit });
              return decodeBuilderStatus(result);
            }),
          );
        } finally {
          await client.close();
        }
      },
    ),
  );
  signal?.throwIfAborted();
  for (const reply of replies.flat()) {
    const error = reply.status === 'rejected' && explainDenial(STATUS_PREFIX, reply.reason);
    if (error instanceof CommandError) throw error;
  }
  const statuses = replies
    .flat()
    .flatMap((reply) => (reply.status === 'fulfilled' ? [reply.value] : []))
    .toSorted((one, other) => one.host.localeCompare(other.host) || one.pid - other.pid);
  return { builders: statuses, functions };
}

/** A {@link RunningJob} with the host of its builder, and the disk images that the builder offers. */
export type LocatedJob = RunningJob & Pick<BuilderStatus, 'host' | 'diskimages'>;

/** Timeout of the query for a running job, in milliseconds. */
const LOOKUP_TIMEOUT = 3000;

/** Finds a job for a function by its handle. Builders that do not reply are left out. */
export async function findRunningJob(
  servers: readonly ServerAddress[],
  functionOfJob: string,
  handle: string,
  signal?: AbortSignal,
): Promise<LocatedJob | undefined> {
  const { builders } = await readSite(servers, signal, LOOKUP_TIMEOUT).catch(() => ({ builders: [] }));
  const subject = subjectOf(functionOfJob);
  // Job servers on one host may give the same handle to different jobs.
  return locate(builders).find(
    (job) => job.handle === handle && (job['image-id'] === subject || job.diskimage === subject),
  );
}

function locate(builders: readonly BuilderStatus[]): readonly LocatedJob[] {
  return builders.flatMap(({ host, diskimages, jobs }) => jobs.map((job) => ({ ...job, host, diskimages })));
}

/** The running jobs of all builders, by the image-id of a build, and by the upload-id of an upload. */
export function runningJobsOf(builders: readonly BuilderStatus[]): ReadonlyMap<string, LocatedJob> {
  const running = new Map<string, LocatedJob>();
  for (const job of locate(builders)) {
    const id = job.kind === 'build' ? job['image-id'] : job['upload-id'];
    if (id !== undefined) running.set(id, job);
  }
  return running;
}
