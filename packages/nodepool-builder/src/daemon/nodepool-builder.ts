import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import {
  formatAddress,
  type JobHandler,
  type JobServer,
  type ServerAddress,
  Worker,
} from '@nodepool-builder/gearman-node';
import {
  type BaseImageBuilder,
  type BuilderService,
  type BuilderSite,
  ImageRepository,
  type Logger,
} from '@nodepool-builder/image-builder';
import { inheritedEnvironment } from '@nodepool-builder/image-builder/module-kit';
import type { Configuration } from '../configuration/configuration.ts';
import { runBuildJob } from '../jobs/build-job.ts';
import { runDeleteJob } from '../jobs/delete-job.ts';
import { OrphanedUploads } from '../jobs/orphaned-uploads.ts';
import { Snapshots } from '../jobs/snapshots.ts';
import { Statistics } from '../jobs/statistics.ts';
import { runUploadJob } from '../jobs/upload-job.ts';
import { UploadRecords } from '../jobs/upload-records.ts';
import { UploadTracker } from '../jobs/upload-tracker.ts';
import { Modules } from '../modules.ts';
import { isOffered } from './ask-servers.ts';
import { BuildRequests } from './build-requests.ts';
import { builderIdentity } from './builder-identity.ts';
import { jobServers, startEmbeddedGearmand } from './embedded-gearmand.ts';
import { FormerImages } from './former-images.ts';
import { functionName, offeredFunctions, type Verb } from './functions.ts';
import { Providers } from './providers.ts';
import { Statsd, statsdAddress } from './statsd.ts';

/** Settings of {@link NodepoolBuilder.start}. */
export interface NodepoolBuilderOptions {
  readonly configuration: Configuration;
  /** Gives the logger of a name: `nodepool.builder`, `nodepool.image.build.debian` and so on. */
  readonly logger: (name: string) => Logger;
  /** The kinds of builders and providers to choose from. Default: those that come with nodepool-builder. */
  readonly modules?: Modules;
  /** How many builds run at a time; 0: none is offered. Default 1. */
  readonly buildWorkers?: number;
  /** How many uploads and deletions run at a time; 0: none is offered. Default 4. */
  readonly uploadWorkers?: number;
  /** Run a job server in this process, on loopback. Default: only if the configuration names none. */
  readonly embeddedGearmand?: boolean;
  /**
   * The environment, of which `STATSD_HOST` and `STATSD_PORT` say where numbers go, and `http_proxy`, `https_proxy`
   * and `no_proxy` how clouds are reached. Default: empty.
   */
  readonly environment?: Readonly<Record<string, string | undefined>>;
  /**
   * Milliseconds in which the job of an upload that a crash broke off has to come back, from the first connection to
   * a job server on, before what it left in the cloud is removed. Default 120,000.
   */
  readonly uploadGracePeriod?: number | undefined;
  /**
   * Seconds for which the machines of failed builds are kept, whatever `keep-on-failure` of their disk images says.
   * Default: as that says.
   */
  readonly keepOnFailure?: number | undefined;
}

/** What a builder is made of. */
interface Parts {
  readonly repository: ImageRepository;
  readonly uploadRecords: UploadRecords;
  readonly providers: Providers;
  /** Services of the builders' modules, by type. */
  readonly services: ReadonlyMap<string, BuilderService<unknown>>;
  readonly builders: ReadonlyMap<string, BaseImageBuilder>;
  readonly statsd: Statsd | undefined;
  readonly statistics: Statistics;
  readonly servers: readonly ServerAddress[];
  readonly jobServer: JobServer | undefined;
}

/**
 * An image builder at work: it offers `image-build`, `image-upload` and `image-delete` to the job servers and
 * does the jobs that they hand out, until it is closed.
 */
export class NodepoolBuilder implements AsyncDisposable {
  readonly repository: ImageRepository;
  /** The job servers that are served, the embedded one among them. */
  readonly servers: readonly ServerAddress[];
  readonly #options: NodepoolBuilderOptions;
  readonly #logger: Logger;
  readonly #jobServer: JobServer | undefined;
  readonly #statsd: Statsd | undefined;
  readonly #statistics: Statistics;
  readonly #providers: Providers;
  readonly #orphanedUploads: OrphanedUploads;
  readonly #uploadTracker: UploadTracker;
  readonly #formerImages: FormerImages;
  readonly #buildWorker: Worker;
  readonly #uploadWorker: Worker;
  readonly #services: ReadonlyMap<string, BuilderService<unknown>>;
  readonly #snapshots: Snapshots;
  readonly #handlers: Readonly<Record<Verb, JobHandler>>;
  #configuration: Configuration;
  #builders: ReadonlyMap<string, BaseImageBuilder>;
  #offerDue: NodeJS.Immediate | undefined;
  #closing: Promise<void> | undefined;

  private constructor(options: NodepoolBuilderOptions, parts: Parts) {
    const { repository, uploadRecords, services, servers } = parts;
    this.#options = options;
    this.#providers = parts.providers;
    this.#services = services;
    this.#builders = parts.builders;
    this.#statsd = parts.statsd;
    this.#statistics = parts.statistics;
    this.#logger = options.logger('nodepool.builder');
    this.repository = repository;
    this.servers = servers;
    this.#jobServer = parts.jobServer;
    this.#configuration = options.configuration;
    const logger = options.logger('nodepool.builder.UploadWorker');
    this.#orphanedUploads = new OrphanedUploads({
      records: uploadRecords,
      provider: (name) => this.#providers.get(name)?.provider,
      logger,
      gracePeriod: options.uploadGracePeriod,
    });
    this.#snapshots = new Snapshots(repository, [...services.values()]);
    this.#uploadTracker = new UploadTracker(uploadRecords, this.#orphanedUploads, logger);
    this.#buildWorker = this.#createWorker('Nodepool Builder Build Worker 1', options.buildWorkers ?? 1);
    this.#uploadWorker = this.#createWorker('Nodepool Builder Upload Worker 1', options.uploadWorkers ?? 4);
    const { all } = uploadRecords;
    this.#uploadWorker.once('connect', () => {
      for (const record of all) this.#orphanedUploads.add(record);
    });
    this.#formerImages = new FormerImages({ servers, onChange: () => this.#offer(), logger });
    this.#handlers = {
      'image-build': (job) => runBuildJob(this.#jobContext(), job),
      'image-upload': (job) => runUploadJob(this.#jobContext(), job),
      'image-delete': (job) => runDeleteJob(this.#jobContext(), job),
    };
    for (const event of ['added', 'removed', 'deleteForgotten'] as const) {
      repository.on(event, () => this.#offerSoon());
    }
    this.#configure();
  }

  /**
   * Takes `images-dir`, undoes what a crash left there, and begins to serve. Job servers may come later.
   *
   * @throws ImageError `directory-locked`, `directory-not-usable`, `builder-unknown`
   */
  static async start(options: NodepoolBuilderOptions): Promise<NodepoolBuilder> {
    const { configuration, logger } = options;
    const embedded = options.embeddedGearmand ?? configuration.gearmanServers.length === 0;
    const repository = await ImageRepository.open(configuration.imagesDir, {
      logger: logger('nodepool.builder'),
    });
    let jobServer: JobServer | undefined;
    const services = new Map<string, BuilderService<unknown>>();
    const { environment = {} } = options;
    const address = statsdAddress(environment);
    const statsd = address && new Statsd(address, logger('nodepool.builder'));
    const statistics = new Statistics(statsd);
    try {
      const uploads = join(repository.directory, '.nodepool-builder/uploads');
      const uploadRecords = await UploadRecords.open(uploads, logger('nodepool.builder.UploadWorker'));
      const { directory } = repository;
      const providers = new Providers({
        logger,
        environment,
        onTask: (provider, task, milliseconds) => statistics.task(provider, task, milliseconds),
        instances: { directory, owner: await builderIdentity(directory), used: [] },
      });
      providers.configure(configuration);
      const builders = createBuilders(options, configuration, providers);
      let servers = jobServers(configuration);
      if (embedded)
        ({ jobServer, servers } = await startEmbeddedGearmand(configuration, logger('gear.Server')));
      const site = createSite({ repository, servers, providers, logger });
      for (const module of (options.modules ?? Modules.builtIn).builders.values()) {
        const service = await module.start?.(site);
        if (service !== undefined) services.set(module.type, service);
      }
      const shared = { repository, uploadRecords, providers, statsd, statistics };
      const parts = { ...shared, services, builders, servers, jobServer };
      return new NodepoolBuilder(options, parts);
    } catch (error) {
      await disposeAll(services.values());
      await jobServer?.close();
      await repository.close();
      await statsd?.close();
      throw error;
    }
  }

  /** Puts another configuration in force; jobs that run go on with the one they began with. */
  reload(configuration: Configuration): void {
    if (configuration.imagesDir !== this.#configuration.imagesDir) {
      this.#logger.warn(
        `images-dir stays ${this.#configuration.imagesDir}; restart to use ${configuration.imagesDir}`,
      );
    }
    if (!isDeepStrictEqual(configuration.gearmanServers, this.#configuration.gearmanServers)) {
      this.#logger.warn(`gearman-servers stay ${namesOf(this.servers)}; restart to use others`);
    }
    this.#builders = createBuilders(this.#options, configuration, this.#providers);
    this.#configuration = configuration;
    this.#orphanedUploads.retry();
    this.#configure();
  }

  /**
   * Drains: takes no new job, finishes those that run and reports their results, then hangs up.
   * An aborted signal stops the jobs that run.
   */
  close(options: { readonly signal?: AbortSignal } = {}): Promise<void> {
    this.#closing ??= this.#close(options);
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(options: { readonly signal?: AbortSignal }): Promise<void> {
    clearImmediate(this.#offerDue);
    await Promise.all([
      this.#formerImages.close(),
      disposeAll(this.#services.values()),
      this.#buildWorker.close(options),
      this.#uploadWorker.close(options),
    ]);
    await this.#orphanedUploads.close();
    this.#providers[Symbol.dispose]();
    await this.#jobServer?.close();
    await this.repository.close();
    await this.#statsd?.close();
  }

  #createWorker(clientId: string, concurrency: number): Worker {
    const logger = this.#options.logger('gear.Worker');
    return new Worker({ servers: this.servers, clientId, concurrency: Math.max(1, concurrency), logger });
  }

  /** Applies the configuration in force. */
  #configure(): void {
    const { diskimages } = this.#configuration;
    this.#providers.configure(this.#configuration);
    this.#offer();
    if (this.#closing !== undefined) return;
    // The services of a host that builds nothing leave the images to other hosts.
    const built = this.#options.buildWorkers === 0 ? [] : diskimages.filter(({ pause }) => !pause);
    for (const [type, service] of this.#services) {
      const entries = built.filter(({ builder }) => builder === type);
      service.configure(entries.map((diskimage) => ({ diskimage, settings: diskimage.settings })));
    }
  }

  /** Many images that come at once, or go, are one change. */
  #offerSoon(): void {
    this.#offerDue ??= setImmediate(() => this.#offer());
  }

  /** Hands the workers the functions that follow from the configuration and the repository. */
  #offer(): void {
    clearImmediate(this.#offerDue);
    this.#offerDue = undefined;
    if (this.#closing !== undefined) return;
    const { buildWorkers, uploadWorkers } = this.#options;
    const { images, pendingDeletes } = this.repository;
    if (uploadWorkers !== 0) this.#formerImages.update(new Set(images.keys()));
    const offer = offeredFunctions({
      diskimages: this.#configuration.diskimages.filter(({ pause }) => !pause).map(({ name }) => name),
      images: images.keys(),
      pendingDeletes,
      waiting: this.#formerImages.waiting,
    });
    const functions = { build: new Map<string, JobHandler>(), upload: new Map<string, JobHandler>() };
    for (const [name, verb] of offer) {
      (verb === 'image-build' ? functions.build : functions.upload).set(name, this.#handlers[verb]);
    }
    if (buildWorkers !== 0) this.#buildWorker.setFunctions(functions.build);
    if (uploadWorkers !== 0) this.#uploadWorker.setFunctions(functions.upload);
  }

  #jobContext(): Parameters<typeof runBuildJob>[0] &
    Parameters<typeof runUploadJob>[0] &
    Parameters<typeof runDeleteJob>[0] {
    return {
      repository: this.repository,
      builder: (diskimage) => this.#builders.get(diskimage),
      buildLogDir: this.#configuration.buildLogDir,
      buildLogRetention: this.#configuration.buildLogRetention,
      buildLogLimit: this.#configuration.buildLogLimit,
      environment: inheritedEnvironment(process.env, this.#configuration.buildEnvironment),
      providers: this.#providers,
      largestDisk: this.#configuration.largestDisk,
      tracker: this.#uploadTracker,
      snapshots: this.#snapshots,
      statistics: this.#statistics,
      logger: this.#options.logger,
      isOffered: (imageId, signal) => isOffered(this.servers, functionName('image-upload', imageId), signal),
      offered: async () => {
        this.#offer();
        if (this.#closing === undefined) await this.#uploadWorker.registered();
      },
    };
  }
}

function createBuilders(
  { modules = Modules.builtIn, keepOnFailure }: NodepoolBuilderOptions,
  { diskimages }: Configuration,
  providers: Providers,
): ReadonlyMap<string, BaseImageBuilder> {
  const services = {
    instanceProvider: (name: string) => providers.instanceProvider(name),
    ...(keepOnFailure !== undefined && { keepOnFailure }),
  };
  return new Map(diskimages.map((diskimage) => [diskimage.name, modules.createBuilder(diskimage, services)]));
}

/** The daemon as the services of its builders see it. */
function createSite({
  repository,
  servers,
  providers,
  logger,
}: Pick<Parts, 'repository' | 'servers' | 'providers'> &
  Pick<NodepoolBuilderOptions, 'logger'>): BuilderSite {
  const requests = new BuildRequests({
    servers,
    hasImage: (imageId) => repository.images.has(imageId),
    logger: logger('nodepool.builder'),
  });
  return {
    repository,
    logger,
    instanceProviders: (names) => {
      providers.use(names);
      return providers.used;
    },
    isOffered: (imageId, signal) => requests.isOffered(imageId, signal),
    requestBuild: (request, signal) => requests.requestBuild(request, signal),
  };
}

async function disposeAll(services: Iterable<AsyncDisposable>): Promise<void> {
  await Promise.all(Array.from(services, (service) => service[Symbol.asyncDispose]()));
}

function namesOf(servers: readonly ServerAddress[]): string {
  return servers.map(formatAddress).join(', ');
}
