import { isDeepStrictEqual } from 'node:util';
import { formatAddress, type JobHandler, type ServerAddress, Worker } from '@nodepool-builder/gearman-node';
import type { BaseImageBuilder, ImageRepository, Logger } from '@nodepool-builder/image-builder';
import { inSlices } from '@nodepool-builder/image-builder/internal';
import { cancelFunction } from '@nodepool-builder/image-manager/protocol';
import { SiteAttestation } from '../attestation/site-attestation.ts';
import type { Configuration, DiskImageConfiguration } from '../configuration/configuration.ts';
import { Modules } from '../configuration/modules.ts';
import { encodeBuilderStatus, statusFunction } from '../protocol/builder-status.ts';
import { functionName, imageFunctions, isOffered, type Verb, verbOf } from '../protocol/functions.ts';
import { logFunction } from '../protocol/log-part.ts';
import { type NodepoolBuilderOptions, openParts, type Parts } from './builder-parts.ts';
import { type Closer, closeAll } from './close-all.ts';
import { isImageOffered } from './fleet.ts';
import { FormerImages } from './former-images.ts';
import { loggedImages, readLogPart } from './image-log.ts';
import { type BuildJobContext, runBuildJob } from './jobs/build-job.ts';
import { runDeleteJob } from './jobs/image-copy.ts';
import { RunningJobs } from './jobs/running-jobs.ts';
import { runUploadJob, type UploadJobContext } from './jobs/upload-job.ts';
import type { Uploads } from './jobs/uploads.ts';
import { JobEvents } from './notifications/event.ts';
import { Notifier } from './notifications/notifier.ts';

/** Maximum number of concurrent jobs of our own clients. Each follower of a log has one. */
const CONTROL_JOBS = 64;

/**
 * A running image builder. It offers `image-build`, `image-upload` and `image-delete` to the job servers and runs the
 * jobs that they assign, until it is closed.
 */
export class NodepoolBuilder implements AsyncDisposable {
  readonly repository: ImageRepository;
  readonly uploads: Pick<Uploads, 'orphans'>;
  /** The job servers in use, including the embedded one. */
  readonly servers: readonly ServerAddress[];
  readonly #options: NodepoolBuilderOptions;
  readonly #parts: Parts;
  readonly #logger: Logger;
  readonly #formerImages: FormerImages;
  readonly #buildWorker: Worker;
  readonly #uploadWorker: Worker;
  /** Serves our own clients at any time, independent of the other workers. */
  readonly #controlWorker: Worker;
  readonly #handlers: Readonly<Record<Verb, JobHandler>> = {
    'image-build': (job) => this.#track(runBuildJob(this.#jobContext(), job)),
    'image-build-paused': (job) => this.#handlers['image-build'](job),
    'image-upload': (job) => this.#track(runUploadJob(this.#jobContext(), job)),
    'image-delete': (job) =>
      runDeleteJob(this.repository, this.#options.logger('nodepool.builder.UploadWorker'), job),
  };
  /** Running jobs that may use providers. */
  readonly #jobs = new Set<Promise<unknown>>();
  readonly #running = new RunningJobs();
  readonly #notifier: Notifier;
  /** Ids of the images whose log this builder has. */
  #logs: readonly string[] = [];
  #configuration: Configuration;
  #attestation: SiteAttestation;
  #builders: ReadonlyMap<string, BaseImageBuilder>;
  #drained: Promise<unknown> | undefined;
  #closed: Promise<void> | undefined;

  private constructor(options: NodepoolBuilderOptions, parts: Parts) {
    const { repository, servers, uploads } = parts;
    this.repository = repository;
    this.uploads = uploads;
    this.servers = servers;
    this.#options = options;
    this.#parts = parts;
    this.#configuration = options.configuration;
    this.#logger = options.logger('nodepool.builder');
    this.#attestation = new SiteAttestation(options.configuration, this.#logger);
    this.#builders = this.#createBuilders(options.configuration, this.#attestation);
    const logger = options.logger('nodepool.builder.UploadWorker');
    this.#buildWorker = this.#createWorker('Nodepool Builder Build Worker 1', options.buildWorkers ?? 1);
    this.#uploadWorker = this.#createWorker('Nodepool Builder Upload Worker 1', options.uploadWorkers ?? 4);
    this.#controlWorker = this.#createWorker('Nodepool Builder Control Worker 1', CONTROL_JOBS, true);
    this.#uploadWorker.once('connect', () => uploads.startGracePeriod());
    this.#formerImages = new FormerImages({ servers, onChange: (name) => this.#offer(name), logger });
    if (options.uploadWorkers !== 0) {
      repository.on('added', ({ id }) => {
        this.#formerImages.delete(id);
        this.#offerImage(id);
      });
      repository.on('removed', ({ id }) => {
        this.#formerImages.add(id);
        this.#offerImage(id);
      });
      repository.on('deleteForgotten', (id) => this.#offerImage(id));
    }
    this.#running.on('changed', () => void this.#offerLogs());
    this.#notifier = new Notifier({ logger: options.logger('nodepool.notifications') });
    const events = new JobEvents();
    this.#running.on('ended', (job) => {
      const event = events.eventOf(job);
      if (event !== undefined) this.#notifier.notify(event);
    });
  }

  /**
   * Locks `images-dir`, cleans up after a crash, and begins to serve. Job servers may start later.
   *
   * @throws ImageError `directory-locked`, `directory-not-usable`, `builder-unknown`
   */
  static async start(options: NodepoolBuilderOptions): Promise<NodepoolBuilder> {
    const closers: Closer[] = [];
    let builder: NodepoolBuilder | undefined;
    try {
      builder = new NodepoolBuilder(options, await openParts(options, closers));
      builder.#configure();
      await builder.#offerImages();
      await builder.#offerLogs();
      return builder;
    } catch (error) {
      const logger = options.logger('nodepool.builder');
      const closed = builder?.close() ?? closeAll(closers);
      await closed.catch((failure: unknown) => logger.error(String(failure)));
      throw error;
    }
  }

  /** Applies another configuration. Running jobs continue with the one that they started with. */
  reload(configuration: Configuration): void {
    const { 'images-dir': directory, 'gearman-servers': servers } = this.#configuration;
    if (configuration['images-dir'] !== directory) {
      this.#logger.warn(`images-dir stays ${directory}; restart to use ${configuration['images-dir']}`);
    }
    if (!isDeepStrictEqual(configuration['gearman-servers'], servers)) {
      const names = this.servers.map(formatAddress).join(', ');
      this.#logger.warn(`gearman-servers stay ${names}; restart to use others`);
    }
    const attestation = new SiteAttestation(configuration, this.#logger);
    this.#builders = this.#createBuilders(configuration, attestation); // it may throw, before anything has changed
    this.#configuration = configuration;
    this.#attestation = attestation;
    this.#parts.uploads.retry();
    this.#configure();
    void this.#offerLogs(); // build-log-dir may have changed
  }

  /**
   * Takes no new job, finishes the running jobs and reports their results. An aborted signal stops the running jobs.
   * The embedded job server remains, so that a manager in this process gets the results.
   */
  async drain(options: { readonly signal?: AbortSignal } = {}): Promise<void> {
    // closeAll() throws the errors of services
    this.#drained ??= Promise.allSettled([
      this.#formerImages.close(),
      this.#buildWorker.close(options),
      this.#uploadWorker.close(options),
      this.#parts.closeServices(),
    ]);
    await this.#drained;
  }

  /** Drains, then disconnects. */
  close(options: { readonly signal?: AbortSignal } = {}): Promise<void> {
    this.#closed ??= this.#close(options);
    return this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(options: { readonly signal?: AbortSignal }): Promise<void> {
    await this.drain(options);
    await this.#controlWorker.close({ signal: AbortSignal.abort() });
    await this.#notifier.close();
    await closeAll(this.#parts.closers);
  }

  #createWorker(clientId: string, concurrency: number, logsFailures = false): Worker {
    return new Worker({
      servers: this.servers,
      clientId,
      concurrency: Math.max(1, concurrency),
      logger: this.#options.logger('gear.Worker'),
      logsFailures,
    });
  }

  async #track<T>(job: Promise<T>): Promise<T> {
    this.#jobs.add(job);
    try {
      return await job;
    } finally {
      this.#jobs.delete(job);
    }
  }

  /** Applies the configuration in force. */
  #configure(): void {
    const { providers, services, uploads } = this.#parts;
    const closeReplaced = providers.configure(this.#configuration);
    this.#notifier.configure(this.#configuration.notifications);
    this.#attestation.attester().catch((error: unknown) => {
      this.#logger.error(`builds and uploads fail until the key can be used: ${(error as Error).message}`);
    });
    if (this.#drained !== undefined) return;
    this.#offerBuilds();
    // On a host that builds nothing, services leave the images to other hosts.
    const configured = Array.from(services, ([type, service]) => {
      const entries = this.#built.filter(({ builder }) => builder === type);
      return service.configure(entries.map((diskimage) => ({ diskimage, settings: diskimage.settings })));
    });
    Promise.all([Promise.allSettled(this.#jobs), uploads.idle(), ...configured])
      .then(closeReplaced)
      .catch((error: unknown) => this.#logger.error(`cannot close a removed provider: ${String(error)}`));
  }

  #createBuilders(
    { diskimages }: Configuration,
    attestation: SiteAttestation,
  ): ReadonlyMap<string, BaseImageBuilder> {
    const { modules = Modules.builtIn, keepOnFailure } = this.#options;
    const { providers } = this.#parts;
    const services = {
      checkAttestations: attestation.checkFile.bind(attestation),
      instanceProvider: (name: string) => providers.instanceProvider(name),
      chooseImage: providers.chooseImage.bind(providers),
      ...(keepOnFailure !== undefined && { keepOnFailure }),
    };
    return new Map(diskimages.map((one) => [one.name, modules.createBuilder(one, services)]));
  }

  /** Registers the functions of the disk images. */
  #offerBuilds(): void {
    if (this.#options.buildWorkers === 0) return;
    const functions = this.#configuration.diskimages.map(({ name, pause }) =>
      functionName(pause ? 'image-build-paused' : 'image-build', name),
    );
    this.#buildWorker.setFunctions(new Map(functions.map((name) => [name, this.#handlers['image-build']])));
  }

  /** Registers the functions of all images. */
  async #offerImages(): Promise<void> {
    if (this.#options.uploadWorkers === 0) return;
    const { images, pendingDeletes } = this.repository;
    await inSlices(images.keys(), (imageId) => this.#offerImage(imageId));
    await inSlices(pendingDeletes, (imageId) => this.#offerImage(imageId));
  }

  #offerImage(imageId: string): void {
    for (const name of imageFunctions(imageId)) this.#offer(name);
  }

  /** Registers or deregisters a function of an image, depending on the repository. */
  #offer(name: string): void {
    if (this.#drained !== undefined) return;
    if (isOffered(name, this.repository, this.#formerImages.waiting)) {
      this.#uploadWorker.add(name, this.#handlers[verbOf(name)]);
    } else {
      this.#uploadWorker.remove(name);
    }
  }

  /** The disk images that this builder builds for anybody. */
  get #built(): readonly DiskImageConfiguration[] {
    if (this.#options.buildWorkers === 0) return [];
    return this.#configuration.diskimages.filter(({ pause }) => !pause);
  }

  /** The functions that only our own clients use. */
  #controlFunctions(): ReadonlyMap<string, JobHandler> {
    const { repository, builderId } = this.#parts;
    const runs = (id: string, uploadId: string | undefined): boolean =>
      this.#running.all.some((one) => one['image-id'] === id && one['upload-id'] === uploadId);
    const log: JobHandler = (job) =>
      readLogPart(this.#logDirectory, job.function, job.payload.toString(), runs, job.signal);
    const functions = new Map<string, JobHandler>();
    functions.set(statusFunction(builderId), () => {
      const diskimages = this.#built.map(({ name }) => name);
      return encodeBuilderStatus(repository, this.#running, diskimages);
    });
    for (const imageId of this.#logs) functions.set(logFunction(imageId), log);
    for (const { 'image-id': imageId } of this.#running.all) {
      functions.set(cancelFunction(imageId), (job) => this.#running.runCancelJob(job));
    }
    return functions;
  }

  get #logDirectory(): string {
    return this.#configuration['build-log-dir'] ?? this.repository.logDirectory;
  }

  /** Offers the logs that exist now. */
  async #offerLogs(): Promise<void> {
    const started = this.#running.all.map((job) => job['image-id']);
    try {
      this.#logs = [...new Set([...(await loggedImages(this.#logDirectory)), ...started])];
    } catch (error) {
      this.#logger.warn(`cannot offer the logs: ${String(error)}`);
    }
    if (this.#closed === undefined) this.#controlWorker.setFunctions(this.#controlFunctions());
  }

  #jobContext(): BuildJobContext & UploadJobContext {
    return {
      ...this.#parts,
      running: this.#running,
      attestation: this.#attestation,
      logDirectory: this.#logDirectory,
      configuration: this.#configuration,
      logger: this.#options.logger,
      builder: (diskimage) => this.#builders.get(diskimage),
      isOffered: (imageId, signal) => isImageOffered(this.servers, imageId, signal),
      offered: async () => {
        if (this.#drained === undefined) await this.#uploadWorker.registered();
      },
    };
  }
}
