import { Worker, type WorkerFunction, type WorkerJob } from '@nodepool-builder/gearman-node';
import type { ImageFile } from '@nodepool-builder/image-builder';
import { Relay } from '../../../test/fixtures/relay.ts';
import type { SiteProvider } from './site-provider.ts';

/** A job that a builder received. */
export interface SeenJob {
  readonly function: string;
  readonly unique: string;
  readonly payload: string;
}

/** Called before a job; may throw or wait. */
type JobHook = (job: WorkerJob) => Promise<void> | void;

/** Settings of a {@link SiteBuilder}. */
export interface SiteBuilderOptions {
  /** Ports of job servers. */
  readonly ports: readonly number[];
  readonly diskimages: readonly string[];
  readonly providers: ReadonlyMap<string, SiteProvider>;
  /** The file to upload for every image. */
  readonly file: ImageFile;
}

/**
 * A builder that registers functions as ours does: those of a new image before the build's result. It removes the
 * functions of a deleted image after the deletion's result.
 */
export class SiteBuilder {
  /** Ids of the images on its disk. */
  readonly images: Set<string> = new Set();
  /** All jobs that it received. */
  readonly jobs: SeenJob[] = [];
  /** Number of jobs whose result a job server has acknowledged. */
  endedJobs = 0;
  beforeBuild: JobHook | undefined;
  beforeUpload: JobHook | undefined;
  beforeDelete: JobHook | undefined;
  /** Adds fields to the result of a build or an upload. */
  moreOf: ((job: WorkerJob) => object) | undefined;
  readonly #options: SiteBuilderOptions;
  #relays: readonly Relay[] = [];
  #worker: Worker | undefined;

  constructor(options: SiteBuilderOptions) {
    this.#options = options;
  }

  /** Starts or restarts it, with the images on its disk. */
  async start(): Promise<void> {
    this.#relays = await Promise.all(this.#options.ports.map((port) => Relay.start(port)));
    const servers = this.#relays.map(({ port }) => ({ host: '127.0.0.1', port }));
    // It reconnects fast, because tests wait for it.
    this.#worker = new Worker({ servers, concurrency: 8, reconnect: { minDelay: 10, maxDelay: 20 } });
    this.offer();
  }

  /** Dies: all connections to job servers break. */
  async die(): Promise<void> {
    for (const relay of this.#relays) relay.close();
    await this.#worker?.close({ signal: AbortSignal.abort(new Error('the builder dies')) });
  }

  /** Returns the jobs with a verb such as `image-build`. */
  jobsOf(verb: string): SeenJob[] {
    return this.jobs.filter((job) => job.function.startsWith(`${verb}:`));
  }

  /** Registers the functions of its disk images and images. */
  offer(): void {
    const handler =
      (work: (job: WorkerJob) => Promise<string>): WorkerFunction =>
      async (job) => {
        this.jobs.push({ function: job.function, unique: job.unique, payload: String(job.payload) });
        void this.#countEnd(job);
        return await work(job);
      };
    const functions = new Map<string, WorkerFunction>();
    for (const name of this.#options.diskimages) {
      functions.set(
        `image-build:${name}`,
        handler((job) => this.#build(job)),
      );
    }
    for (const id of this.images) {
      functions.set(
        `image-upload:${id}`,
        handler((job) => this.#upload(id, job)),
      );
      functions.set(
        `image-delete:${id}`,
        handler((job) => this.#delete(id, job)),
      );
    }
    this.#worker?.setFunctions(functions);
  }

  async #build(job: WorkerJob): Promise<string> {
    job.sendStatus(0, 100);
    await this.beforeBuild?.(job);
    const { 'image-id': imageId } = JSON.parse(String(job.payload)) as { 'image-id': string };
    this.images.add(imageId);
    this.offer();
    await this.#worker?.registered();
    return JSON.stringify({ 'image-id': imageId, ...this.moreOf?.(job) });
  }

  async #upload(imageId: string, job: WorkerJob): Promise<string> {
    job.sendStatus(0, 100);
    await this.beforeUpload?.(job);
    const { provider: name, 'image-name': imageName } = JSON.parse(String(job.payload)) as {
      provider: string;
      'image-name': string;
    };
    const provider = this.#options.providers.get(name);
    if (provider === undefined) throw new Error(`no provider ${name}`);
    const request = { uploadId: job.unique, imageId, imageName, file: this.#options.file };
    const { externalId } = await provider.upload(request, { signal: job.signal });
    return JSON.stringify({ 'external-id': externalId, ...this.moreOf?.(job) });
  }

  async #delete(imageId: string, job: WorkerJob): Promise<string> {
    await this.beforeDelete?.(job);
    void this.#forgetWhenAcknowledged(imageId, job);
    return '';
  }

  async #countEnd({ acknowledged }: WorkerJob): Promise<void> {
    await acknowledged;
    this.endedJobs += 1;
  }

  async #forgetWhenAcknowledged(imageId: string, { acknowledged }: WorkerJob): Promise<void> {
    await acknowledged;
    this.images.delete(imageId);
    this.offer();
  }
}
