import { hostname } from 'node:os';
import { join } from 'node:path';
import {
  type BuilderService,
  type BuilderSite,
  ImageRepository,
  type Logger,
} from '@nodepool-builder/image-builder';
import type { Configuration } from '../configuration/configuration.ts';
import { jobServers } from '../configuration/gearman-server.ts';
import { Modules } from '../configuration/modules.ts';
import { Providers } from '../site/providers.ts';
import { builderIdentity } from './builder-identity.ts';
import type { Closer } from './close-all.ts';
import { startEmbeddedGearmand } from './embedded-gearmand.ts';
import { isImageOffered, requestBuild } from './fleet.ts';
import { type JobEvent, Statistics } from './jobs/statistics.ts';
import { Uploads } from './jobs/uploads.ts';

/** Settings of {@link NodepoolBuilder.start}. */
export interface NodepoolBuilderOptions {
  readonly configuration: Configuration;
  /** Returns a logger by name: `nodepool.builder`, `nodepool.image.build.debian` and so on. */
  readonly logger: (name: string) => Logger;
  /** Builder and provider modules. Default: the built-in modules. */
  readonly modules?: Modules;
  /** Number of concurrent builds. With 0, no builds are offered. Default 1. */
  readonly buildWorkers?: number;
  /** Number of concurrent uploads and deletions. With 0, none are offered. Default 4. */
  readonly uploadWorkers?: number;
  /** True to run a job server in this process, on loopback. Default: only if the configuration names none. */
  readonly embeddedGearmand?: boolean;
  /** Environment variables: `STATSD_HOST` and `STATSD_PORT` turn on metrics. Default: empty. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
  /**
   * Milliseconds, from the first connection to a job server, in which the job of an interrupted upload must be assigned
   * again before its parts in the cloud are deleted. Default 120,000.
   */
  readonly uploadGracePeriod?: number | undefined;
  /** Seconds for which instances of failed builds are kept. Default: `keep-on-failure` of their disk images. */
  readonly keepOnFailure?: number | undefined;
  /** Called at each event of a job or a provider. It must not throw. */
  readonly onEvent?: ((event: JobEvent) => void) | undefined;
}

/** The parts of a builder that open before it serves. */
export type Parts = Awaited<ReturnType<typeof openParts>>;

/** Opens the parts, and adds a closer for each that needs one. */
export async function openParts(options: NodepoolBuilderOptions, closers: Closer[]) {
  const { configuration, logger, environment = {}, modules = Modules.builtIn } = options;
  const builderLogger = logger('nodepool.builder');
  const statistics = new Statistics(environment, builderLogger, options.onEvent);
  closers.push(() => statistics[Symbol.asyncDispose]());
  const repository = await ImageRepository.open(configuration['images-dir'], { logger: builderLogger });
  closers.push(() => repository.close());
  repository.on('converted', (format, milliseconds) =>
    statistics.onEvent({ kind: 'converted', format, seconds: milliseconds / 1000 }),
  );
  const orphanEnded = (orphan: 'upload' | 'instance', provider: string, isDeleted: boolean): void =>
    statistics.onEvent({ kind: 'orphan-ended', orphan, provider, isDeleted });
  const { directory } = repository;
  const identity = await builderIdentity(directory);
  const providers = new Providers({
    logger,
    onTask: (provider, task, milliseconds) => statistics.task(provider, task, milliseconds),
    instances: { directory, owner: identity },
  });
  providers.configure(configuration);
  let servers = jobServers(configuration);
  if (options.embeddedGearmand ?? configuration['gearman-servers'].length === 0) {
    const embedded = await startEmbeddedGearmand(configuration, logger('gear.Server'));
    closers.push(() => embedded.jobServer.close());
    ({ servers } = embedded);
  }
  closers.push(() => providers[Symbol.dispose]());
  const uploads = await Uploads.open(join(directory, '.nodepool-builder/uploads'), {
    provider: (name) => providers.get(name)?.provider,
    logger: logger('nodepool.builder.UploadWorker'),
    gracePeriod: options.uploadGracePeriod,
    onDiscard: (provider, isDiscarded) => orphanEnded('upload', provider, isDiscarded),
  });
  closers.push(() => uploads.close());
  const site: BuilderSite = {
    repository,
    logger,
    instanceProviders: (names) => providers.used(names),
    onOrphanDeleted: (provider) => orphanEnded('instance', provider, true),
    isOffered: async (imageId, signal) =>
      repository.images.has(imageId) || (await isImageOffered(servers, imageId, signal)),
    requestBuild: (request, signal) => requestBuild(servers, request, signal, builderLogger),
  };
  /** Services of the builders' modules, by type. */
  const services = new Map<string, BuilderService<unknown>>();
  let disposals: Promise<PromiseSettledResult<void>[]> | undefined;
  /** Closes all services concurrently, waits for each of them, and then throws the first error. */
  const closeServices = async (): Promise<void> => {
    disposals ??= Promise.allSettled(
      Array.from(services.values(), async (service) => await service[Symbol.asyncDispose]()),
    );
    const failed = (await disposals).find((disposal) => disposal.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
  };
  closers.push(closeServices);
  for (const module of modules.builders.values()) {
    const service = await module.start?.(site);
    if (service !== undefined) services.set(module.type, service);
  }
  const parts = {
    repository,
    builderId: `${hostname()}-${identity.slice(0, 8)}`,
    uploads,
    providers,
    services,
    statistics,
    servers,
  };
  return { ...parts, closeServices, closers };
}
