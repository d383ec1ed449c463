import {
  formatAddress,
  type JobHandler,
  type JobServer,
  type ServerAddress,
  Worker,
} from '@nodepool-builder/gearman-node';
import {
  type BaseImageBuilder,
  createImageBuilder,
  IMAGE_BUILDERS,
  type ImageBuilderClass,
  ImageRepository,
  type Logger,
} from '@nodepool-builder/image-builder';
import { IMAGE_PROVIDERS } from '@nodepool-builder/image-providers';
import type { Configuration } from '../configuration/configuration.ts';
import { runBuildJob } from '../jobs/build-job.ts';
import { runDeleteJob } from '../jobs/delete-job.ts';
import { type ConfiguredProvider, runUploadJob } from '../jobs/upload-job.ts';
import { jobServers, startEmbeddedGearmand } from './embedded-gearmand.ts';
import { offeredFunctions, type Verb } from './functions.ts';

/** Settings of {@link NodepoolBuilder.start}. */
export interface NodepoolBuilderOptions {
  readonly configuration: Configuration;
  /** Gives the logger of a name: `nodepool.builder`, `nodepool.image.build.debian` and so on. */
  readonly logger: (name: string) => Logger;
  /** The builders that `diskimages[].builder` chooses from. Default: those of image-builder's registry. */
  readonly builders?: Readonly<Record<string, ImageBuilderClass>>;
  /** How many builds run at a time. Default 1. */
  readonly buildWorkers?: number;
  /** How many uploads and deletions run at a time. Default 4. */
  readonly uploadWorkers?: number;
  /** Run a job server in this process, on loopback. Default: only if the configuration names none. */
  readonly embeddedGearmand?: boolean;
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
  readonly #buildWorker: Worker;
  readonly #uploadWorker: Worker;
  readonly #handlers: Readonly<Record<Verb, JobHandler>>;
  #configuration: Configuration;
  #builders: ReadonlyMap<string, BaseImageBuilder> = new Map();
  #providers: ReadonlyMap<string, ConfiguredProvider> = new Map();
  #offerDue: NodeJS.Immediate | undefined;
  #closing: Promise<void> | undefined;

  private constructor(
    options: NodepoolBuilderOptions,
    repository: ImageRepository,
    servers: readonly ServerAddress[],
    jobServer: JobServer | undefined,
  ) {
    this.#options = options;
    this.#logger = options.logger('nodepool.builder');
    this.repository = repository;
    this.servers = servers;
    this.#jobServer = jobServer;
    this.#configuration = options.configuration;
    this.#buildWorker = this.#createWorker('Nodepool Builder Build Worker', options.buildWorkers ?? 1);
    this.#uploadWorker = this.#createWorker('Nodepool Builder Upload Worker', options.uploadWorkers ?? 4);
    this.#handlers = {
      'image-build': (job) => runBuildJob(this.#jobContext(), job),
      'image-upload': (job) => runUploadJob(this.#jobContext(), job),
      'image-delete': (job) => runDeleteJob(this.#jobContext(), job),
    };
    this.#configure(options.configuration);
    for (const event of ['added', 'removed', 'deleteForgotten'] as const) {
      repository.on(event, () => this.#offerSoon());
    }
    this.#offer();
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
    try {
      let servers = jobServers(configuration);
      if (embedded)
        ({ jobServer, servers } = await startEmbeddedGearmand(configuration, logger('gear.Server')));
      return new NodepoolBuilder(options, repository, servers, jobServer);
    } catch (error) {
      await jobServer?.close();
      await repository.close();
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
    if (namesOf(jobServers(configuration)) !== namesOf(jobServers(this.#configuration))) {
      this.#logger.warn(`gearman-servers stay ${namesOf(this.servers)}; restart to use others`);
    }
    this.#configure(configuration);
    this.#offer();
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
    await Promise.all([this.#buildWorker.close(options), this.#uploadWorker.close(options)]);
    await this.#jobServer?.close();
    await this.repository.close();
  }

  #createWorker(clientId: string, concurrency: number): Worker {
    const logger = this.#options.logger('gear.Worker');
    return new Worker({ servers: this.servers, clientId, concurrency, logger });
  }

  #configure(configuration: Configuration): void {
    const registry = this.#options.builders ?? IMAGE_BUILDERS;
    this.#builders = new Map(
      configuration.diskimages.map((diskimage) => [
        diskimage.name,
        createImageBuilder(diskimage.builder, diskimage, registry),
      ]),
    );
    this.#providers = new Map(
      configuration.providers.map((provider) => {
        const { name, type, imageType, directory } = provider;
        const create = IMAGE_PROVIDERS[type];
        if (create === undefined)
          this.#logger.warn(`provider ${name}: this release cannot upload to ${type}`);
        const settings = { name, formats: [imageType], ...(directory !== undefined && { directory }) };
        return [name, { configuration: provider, provider: create?.(settings) }];
      }),
    );
    this.#configuration = configuration;
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
    const offer = offeredFunctions({
      diskimages: this.#builders.keys(),
      images: this.repository.images.keys(),
      pendingDeletes: this.repository.pendingDeletes,
    });
    const functions = { build: new Map<string, JobHandler>(), upload: new Map<string, JobHandler>() };
    for (const [name, verb] of offer) {
      (verb === 'image-build' ? functions.build : functions.upload).set(name, this.#handlers[verb]);
    }
    this.#buildWorker.setFunctions(functions.build);
    this.#uploadWorker.setFunctions(functions.upload);
  }

  #jobContext(): Parameters<typeof runBuildJob>[0] & Parameters<typeof runUploadJob>[0] {
    return {
      repository: this.repository,
      builder: (diskimage) => this.#builders.get(diskimage),
      buildLogDir: this.#configuration.buildLogDir,
      providers: this.#providers,
      logger: this.#options.logger,
      offered: async () => {
        this.#offer();
        if (this.#closing === undefined) await this.#uploadWorker.registered();
      },
    };
  }
}

function namesOf(servers: readonly ServerAddress[]): string {
  return servers.map(formatAddress).join(', ');
}
