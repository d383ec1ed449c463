import { statfs } from 'node:fs/promises';
import { hostname } from 'node:os';
import { Client, type ServerAddress } from '@nodepool-builder/gearman-node';
import type { ImageRepository, SettingsOf } from '@nodepool-builder/image-builder';
import { JsonReader, type SettingsSchema } from '@nodepool-builder/image-builder/module-kit';
import { askServers } from '../daemon/fleet.ts';
import { packageVersion } from '../version.ts';
import { RUNNING_JOB, type RunningJobs } from './running-jobs.ts';

const TEXT = { type: 'string' } as const satisfies SettingsSchema;

/** Schema of a {@link BuilderStatus}, the result of a job for `builder-status:<builder-id>`. */
export const BUILDER_STATUS = {
  type: 'object',
  required: ['host', 'pid', 'version', 'started', 'images-dir', 'disk-free', 'disk-size', 'images', 'jobs'],
  properties: {
    host: TEXT,
    pid: { type: 'integer' },
    version: TEXT, // of nodepool-builder
    started: TEXT, // start of the process, in ISO 8601
    'images-dir': TEXT,
    'disk-free': { type: 'integer' }, // bytes that an image may take in images-dir
    'disk-size': { type: 'integer' }, // bytes of that file system
    images: { type: 'integer' }, // number of images in images-dir
    jobs: { type: 'array', items: RUNNING_JOB },
  },
} as const satisfies SettingsSchema;

/** What a builder says of itself. */
export type BuilderStatus = SettingsOf<typeof BUILDER_STATUS>;

/** Function that one builder offers. Its jobs have an empty argument and the {@link BuilderStatus} as the result. */
export function statusFunction(builderId: string): string {
  return `${STATUS}${builderId}`;
}

const STATUS = 'builder-status:';

/** Returns the status of this process. */
export async function builderStatus(
  repository: Pick<ImageRepository, 'directory' | 'images'>,
  running: Pick<RunningJobs, 'all'>,
): Promise<BuilderStatus> {
  const { directory, images } = repository;
  const { bavail, blocks, bsize } = await statfs(directory);
  return {
    host: hostname(),
    pid: process.pid,
    version: packageVersion(),
    started: new Date(Math.round(performance.timeOrigin)).toISOString(),
    'images-dir': directory,
    'disk-free': bavail * bsize,
    'disk-size': blocks * bsize,
    images: images.size,
    jobs: [...running.all],
  };
}

/** Time limit for the answers of all builders, in milliseconds. */
const TIMEOUT = 5000;

const STATUS_READER = new JsonReader(BUILDER_STATUS);

/**
 * Asks all builders behind the job servers for their status. Builders that do not answer, as those of a release without
 * this function, are left out.
 *
 * @throws ConnectionError `connect-failed` if no job server answers
 * @throws the signal's reason
 */
export async function readBuilderStatuses(
  servers: readonly ServerAddress[],
  signal?: AbortSignal,
): Promise<readonly BuilderStatus[]> {
  const offered = await askServers(
    servers,
    async (admin, server) =>
      (await admin.status())
        .filter(({ name, availableWorkers }) => name.startsWith(STATUS) && availableWorkers > 0)
        .map(({ name }) => ({ name, server })),
    signal,
    TIMEOUT,
  );
  // A builder is connected to each of its job servers: the first that lists it is asked.
  const builders = new Map(offered.toReversed().map((offer) => [offer.name, offer]));
  const limit = AbortSignal.any([AbortSignal.timeout(TIMEOUT), ...(signal === undefined ? [] : [signal])]);
  const answers = await Promise.all(
    Array.from(
      Map.groupBy(builders.values(), ({ server }) => server),
      async ([server, offers]) => {
        const client = new Client({ servers: [server], clientId: 'nodepool-builder status' });
        try {
          return await Promise.allSettled(
            offers.map(async ({ name }) => {
              const result = await client.submit(name, '', { signal: limit });
              return STATUS_READER.parse(result.toString());
            }),
          );
        } finally {
          await client.close();
        }
      },
    ),
  );
  signal?.throwIfAborted();
  return answers
    .flat()
    .flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value] : []))
    .toSorted((one, other) => one.host.localeCompare(other.host) || one.pid - other.pid);
}
