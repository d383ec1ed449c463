import { Worker, type WorkerFunction, type WorkerJob } from '@nodepool-builder/gearman-node';
import type { ImageFile } from '@nodepool-builder/image-builder';
import { Relay } from '../../../test/fixtures/relay.ts';
import type { SiteProvider } from './site-provider.ts';

/** A job that a builder was given. */
export interface SeenJob {
  readonly function: string;
  readonly unique: string;
  readonly payload: string;
}

/** Runs before a job is done: it may throw, or wait. */
type JobHook = (job: WorkerJob) => Promise<void> | void;

/** What a {@link SiteBuilder} has to do with. */
export interface SiteBuilderOptions {
  /** Ports of job servers. */
  readonly ports: readonly number[];
  readonly diskimages: readonly string[];
  readonly providers: ReadonlyMap<string, SiteProvider>;
  /** What is uploaded, whatever the image. */
  readonly file: ImageFile;
}

/**
 * A builder as job servers see ours: the functions of a new image are there before the build's answer, and those of
 * a deleted one go after the deletion's.
 */
export class SiteBuilder {
  /** Ids of the images that lie on its disk. */
  readonly images: Set<string> = new Set();
  /** All jobs that it was given. */
  readonly jobs: SeenJob[] = [];
  /** How many of them job servers know to have ended. */
  endedJobs = 0;
  beforeBuild: JobHook | undefined;
  beforeUpload: JobHook | undefined;
  beforeDelete: JobHook | undefined;
  readonly #options: SiteBuilderOptions;
  #relays: readonly Relay[] = [];
  #worker: Worker | undefined;

  constructor(options: SiteBuilderOptions) {
    this.#options = options;
  }

  /** Starts it, the first time or after its death: with the images that lie there. */
  async start(): Promise<void> {
    this.#relays = await Promise.all(this.#options.ports.map((port) => Relay.start(port)));
    const servers = this.#relays.map(({ port }) => ({ host: '127.0.0.1', port }));
    // It reconnects fast, as tests wait for it.
    this.#worker = new Worker({ servers, concurrency: 8, reconnect: { minDelay: 10, maxDelay: 20 } });
    this.offer();
  }

  /** It dies, and job servers lose it without a word. */
  async die(): Promise<void> {
    for (const relay of this.#relays) relay.close();
    await this.#worker?.close({ signal: AbortSignal.abort(new Error('the builder dies')) });
  }

  /** Jobs of one kind, `image-build` for instance. */
  jobsOf(verb: string): SeenJob[] {
    return this.jobs.filter((job) => job.function.startsWith(`${verb}:`));
  }

  /** Offers what its disk images and images make possible. */
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
    return JSON.stringify({ 'image-id': imageId });
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
    return JSON.stringify({ 'external-id': externalId });
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
