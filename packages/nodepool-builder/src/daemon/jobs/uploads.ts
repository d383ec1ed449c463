import type { WorkerJob } from '@nodepool-builder/gearman-node';
import type { ImageProvider, Logger, UploadResult } from '@nodepool-builder/image-builder';
import { DamagedRecordError, Mutex, RecordDirectory } from '@nodepool-builder/image-builder/internal';
import { CancelledError, JobError } from '../../protocol/job-reply.ts';
import { errorLine } from '../../terms/command-error.ts';
import { recordName, UPLOAD_RECORD, type UploadRecord } from './upload-record.ts';

/** Time for the job of an orphaned upload to be assigned again, in milliseconds. */
const GRACE_PERIOD = 120_000;

/**
 * Pause after a failed discard, in milliseconds. Each further failure doubles it up to the limit, and a success resets
 * it.
 */
const FIRST_PAUSE = 10_000;
const LAST_PAUSE = 600_000;

/** End of a job whose builder or job server was lost. */
const LOST = 'was not assigned again';

/** Settings of {@link Uploads}. */
export interface UploadsOptions {
  /** Returns a provider; undefined if it is not configured. Throws if its module fails to open it. */
  readonly provider: (name: string) => ImageProvider | undefined;
  readonly logger: Logger;
  /** Milliseconds. Default 120,000. */
  readonly gracePeriod?: number | undefined;
  /** Called once an orphan was discarded, or could not be discarded. */
  readonly onDiscard?: (provider: string, isDiscarded: boolean) => void;
}

/** The parts of a job that uploads need. */
export type UploadingJob = Pick<WorkerJob, 'acknowledged' | 'connectionLost' | 'signal'>;

/** An upload that has started, and whose end no job server has acknowledged. Without a job, it is an orphan. */
interface Upload {
  /** Name of the record file. */
  readonly name: string;
  record: UploadRecord;
  /** The latest job: a job server that lost its connection to this builder submits the job again. */
  job?: UploadingJob | undefined;
  running?: Promise<UploadResult> | undefined;
  /** How the latest job ended. A cancelled job is not assigned again. */
  ending: 'was cancelled' | 'failed' | 'was not assigned again';
  /** Timer of the grace period of an orphan. */
  timer?: NodeJS.Timeout;
  /** True if the upload is an orphan whose grace period is over. */
  isDue: boolean;
  /** Resolves to false if the discard failed. */
  discard?: Promise<boolean> | undefined;
}

/** The discards at one provider. They run one after the other, with a pause after a failure. */
interface Round {
  readonly mutex: Mutex;
  pause: number;
  timer?: NodeJS.Timeout;
}

/**
 * The uploads on record, each in a small file. A record is on disk before its provider gets the first request, and
 * until the job server has acknowledged the result, so that a crash leaves no unknown image in a cloud.
 *
 * After a crash or the loss of a job server, an upload is an orphan. If its job is assigned again, the upload
 * continues. After the grace period, or at once if the job was cancelled, the provider discards it.
 */
export class Uploads {
  readonly #options: UploadsOptions;
  readonly #directory: RecordDirectory<typeof UPLOAD_RECORD>;
  readonly #uploads = new Map<string, Upload>();
  /** Serialises writes in the order of the calls. */
  readonly #writing = new Mutex();
  /** Rounds by provider, so that a slow or failing provider does not delay others. */
  readonly #rounds = new Map<string, Round>();
  readonly #stop = new AbortController();

  private constructor(directory: string, options: UploadsOptions) {
    this.#options = options;
    this.#directory = new RecordDirectory(directory, UPLOAD_RECORD);
  }

  /** Reads the records of an earlier process. A damaged record is logged and left alone. */
  static async open(directory: string, options: UploadsOptions): Promise<Uploads> {
    const uploads = new Uploads(directory, options);
    const files = uploads.#directory;
    for (const name of await files.names()) {
      try {
        const record = await files.read(name);
        if (record !== undefined) uploads.#uploads.set(name, { name, record, ending: LOST, isDue: false });
        else await files.remove(name); // half-written: its upload never started
      } catch (error) {
        if (!(error instanceof DamagedRecordError)) throw error;
        options.logger.warn(`ignoring the upload record ${error.message}`);
      }
    }
    return uploads;
  }

  /** Starts the grace period of all uploads without a job. */
  startGracePeriod(): void {
    for (const upload of this.#uploads.values()) if (upload.job === undefined) this.#orphan(upload);
  }

  /**
   * Runs an upload on record. Jobs for an upload that is already running share it.
   *
   * @param fresh the record of a new upload
   * @param work gets the record of an earlier attempt if one exists, because a further attempt is the same upload, with
   * the same name in the cloud
   * @param signal aborts the work. Default: the job's signal
   */
  async run(
    job: UploadingJob,
    fresh: UploadRecord,
    work: (record: UploadRecord) => Promise<UploadResult>,
    signal: AbortSignal = job.signal,
  ): Promise<UploadResult> {
    const name = recordName(fresh);
    const upload: Upload = this.#uploads.get(name) ?? { name, record: fresh, ending: LOST, isDue: false };
    this.#uploads.set(name, upload);
    upload.job = job;
    upload.running ??= this.#start(upload, fresh, work).finally(() => (upload.running = undefined));
    try {
      const result = await upload.running;
      await this.#succeeded(upload, job, result.externalId);
      return result;
    } catch (error) {
      const isLost = signal.aborted || job.connectionLost.aborted;
      if (signal.reason instanceof CancelledError) upload.ending = 'was cancelled';
      else upload.ending = isLost ? LOST : 'failed';
      // A provider cleans up after a failed upload, unless it could not reach the cloud or was aborted.
      const isOrphan = mayHaveLeft(error) || isLost;
      await this.#end(upload, job, isOrphan);
      throw error;
    }
  }

  /** Number of uploads without a job, by provider. */
  get orphans(): ReadonlyMap<string, number> {
    const orphans = [...this.#uploads.values()].filter(({ job }) => job === undefined);
    const byProvider = Map.groupBy(orphans, ({ record }) => record.provider);
    return new Map(Array.from(byProvider, ([provider, all]) => [provider, all.length]));
  }

  /** Retries at once all discards that failed or had no provider. */
  retry(): void {
    for (const provider of new Set(this.#due().map(({ record }) => record.provider))) {
      this.#roundOf(provider).pause = FIRST_PAUSE;
      this.#startRound(provider);
    }
  }

  /** Resolves when no discard is running. */
  async idle(): Promise<void> {
    await Promise.all(Array.from(this.#rounds.values(), async ({ mutex }) => await mutex.idle()));
  }

  /** Stops. The remaining uploads stay on record for the next process. */
  async close(): Promise<void> {
    this.#stop.abort(new Error('the builder is being stopped'));
    for (const { timer } of this.#uploads.values()) clearTimeout(timer);
    for (const { timer } of this.#rounds.values()) clearTimeout(timer);
    await this.idle();
  }

  async #start(
    upload: Upload,
    fresh: UploadRecord,
    work: (record: UploadRecord) => Promise<UploadResult>,
  ): Promise<UploadResult> {
    clearTimeout(upload.timer);
    upload.isDue = false;
    upload.ending = LOST;
    const isDiscarded = await upload.discard;
    const { 'external-id': _, ...record } = isDiscarded ? fresh : upload.record;
    await this.#write(upload, record);
    return await work(record);
  }

  async #succeeded(upload: Upload, job: UploadingJob, externalId: string): Promise<void> {
    if (upload.job !== job) return;
    const { record } = upload;
    // From here on the client may know the image, so it must not be discarded even if the result seems lost.
    if (!job.connectionLost.aborted) await this.#write(upload, { ...record, 'external-id': externalId });
    if (upload.job !== job) return;
    if (!job.connectionLost.aborted) {
      void job.acknowledged.then(() => this.#end(upload, job, job.connectionLost.aborted));
      return;
    }
    // The result is lost. Either the job runs again, or the image becomes an orphan.
    await this.#write(upload, record);
    await this.#end(upload, job, true);
  }

  /** Ends an upload, unless a later job has taken it over. */
  async #end(upload: Upload, job: UploadingJob, isOrphan: boolean): Promise<void> {
    if (upload.job !== job) return;
    upload.job = undefined;
    if (isOrphan) {
      this.#orphan(upload);
      return;
    }
    await this.#remove(upload).catch((error: unknown) => {
      const { 'image-id': imageId } = upload.record;
      this.#options.logger.warn(`cannot remove the record of the upload of ${imageId}: ${String(error)}`);
    });
  }

  /**
   * @throws JobError that is retriable, because the provider may have parts of an earlier attempt, or a finished image
   */
  async #write(upload: Upload, record: UploadRecord): Promise<void> {
    await this.#writing.run(async () => {
      try {
        await this.#directory.write(upload.name, record);
      } catch (cause) {
        const problem = `cannot write the record of the upload of ${record['image-id']}`;
        throw new JobError(`${problem}: ${errorLine(cause)}; check images-dir`, {
          cause,
          retriable: true,
        });
      }
      upload.record = record;
    });
  }

  async #remove(upload: Upload): Promise<void> {
    await this.#writing.run(async () => {
      await this.#directory.remove(upload.name);
      if (upload.job === undefined) this.#uploads.delete(upload.name);
    });
  }

  #orphan(upload: Upload): void {
    if (this.#stop.signal.aborted) return;
    const gracePeriod = upload.ending === 'was cancelled' ? 0 : (this.#options.gracePeriod ?? GRACE_PERIOD);
    const timer = setTimeout(() => {
      upload.isDue = true;
      this.#startRound(upload.record.provider);
    }, gracePeriod);
    upload.timer = timer.unref();
  }

  #due(provider?: string): readonly Upload[] {
    const due = [...this.#uploads.values()].filter(({ isDue }) => isDue);
    return provider === undefined ? due : due.filter(({ record }) => record.provider === provider);
  }

  #roundOf(provider: string): Round {
    const round = this.#rounds.get(provider) ?? { mutex: new Mutex(), pause: FIRST_PAUSE };
    this.#rounds.set(provider, round);
    return round;
  }

  #startRound(provider: string): void {
    const round = this.#roundOf(provider);
    clearTimeout(round.timer);
    if (this.#stop.signal.aborted || this.#due(provider).length === 0) return;
    void round.mutex.run(() => this.#discardDue(provider, round));
  }

  async #discardDue(provider: string, round: Round): Promise<void> {
    const isDone = await this.#discardAll(provider, round).catch((error: unknown) => {
      const problem = `uploads to ${provider}: they could not be discarded and are retried later`;
      this.#options.logger.warn(`${problem}: ${errorLine(error)}`);
      return false;
    });
    if (isDone || this.#stop.signal.aborted) return;
    clearTimeout(round.timer);
    round.timer = setTimeout(() => this.#startRound(provider), round.pause).unref();
    round.pause = Math.min(round.pause * 2, LAST_PAUSE);
  }

  /** Returns false if a retry may succeed. */
  async #discardAll(providerName: string, round: Round): Promise<boolean> {
    const uploads = this.#due(providerName);
    const provider = this.#options.provider(providerName);
    if (provider === undefined) {
      const ids = uploads.map(({ record }) => record['image-id']).join(', ');
      this.#options.logger.warn(
        `provider "${providerName}" is no longer configured; parts of the uploads of ${ids} may stay there; ` +
          'add it again and reload, or delete the files there by hand',
      );
      return true;
    }
    for (const upload of uploads) {
      // During other discards, its job may have been assigned again, or the builder may have been stopped.
      if (!upload.isDue || this.#stop.signal.aborted) continue;
      upload.discard = this.#discard(provider, upload).finally(() => (upload.discard = undefined));
      if (!(await upload.discard)) {
        // The next round begins with the others, which may succeed.
        if (this.#uploads.delete(upload.name)) this.#uploads.set(upload.name, upload);
        return false;
      }
      round.pause = FIRST_PAUSE;
    }
    return true;
  }

  async #discard(provider: ImageProvider, upload: Upload): Promise<boolean> {
    const { logger, onDiscard } = this.#options;
    const { record } = upload;
    const what = `upload of ${record['image-id']} to ${provider.name}, started ${record.begun}`;
    try {
      if (record['external-id'] === undefined) {
        const image = { imageId: record['image-id'], imageName: record['image-name'] };
        await provider.discard(record['upload-id'], { signal: this.#stop.signal, image });
        onDiscard?.(provider.name, true);
        logger.info(`${what}: discarded, because its job ${upload.ending}`);
      } else {
        // The result was sent but not acknowledged. An orphan does less harm than a missing image that nodepool uses.
        logger.warn(`${what}: image ${record['external-id']} stays, because the client may know it`);
      }
      await this.#remove(upload);
      upload.isDue = false;
      return true;
    } catch (error) {
      if (this.#stop.signal.aborted) return false;
      onDiscard?.(provider.name, false);
      logger.warn(`${what}: discard failed and is retried later: ${errorLine(error)}`);
      return false;
    }
  }
}

/** Returns whether the provider may have been unable to clean up, which includes unexpected errors. */
function mayHaveLeft(error: unknown): boolean {
  return !(error instanceof Error && 'retriable' in error && error.retriable === false);
}
