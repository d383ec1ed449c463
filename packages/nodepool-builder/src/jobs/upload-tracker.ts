import type { WorkerJob } from '@nodepool-builder/gearman-node';
import type { Logger, UploadResult } from '@nodepool-builder/image-builder';
import type { OrphanedUploads } from './orphaned-uploads.ts';
import { recordName, type UploadKey, type UploadRecord, type UploadRecords } from './upload-records.ts';

/** The parts of a job that the tracker needs. */
export type TrackedJob = Pick<WorkerJob, 'acknowledged' | 'connectionLost' | 'signal'>;

/**
 * Keeps a record of each upload from before it starts until the job server has acknowledged its result. Jobs for an
 * upload that is already running share it.
 */
export class UploadTracker {
  readonly #records: UploadRecords;
  readonly #orphaned: OrphanedUploads;
  readonly #logger: Logger;
  readonly #running = new Map<string, Promise<UploadResult>>();
  /** The latest job of each upload: a job server that lost its connection to this builder submits the job again. */
  readonly #latestJobs = new Map<string, TrackedJob>();

  constructor(records: UploadRecords, orphaned: OrphanedUploads, logger: Logger) {
    this.#records = records;
    this.#orphaned = orphaned;
    this.#logger = logger;
  }

  /**
   * Runs an upload on record. `upload` gets the record of an earlier attempt if one exists: a further attempt is the
   * same upload, with the same name in the cloud.
   */
  async run(
    job: TrackedJob,
    fresh: UploadRecord,
    upload: (record: UploadRecord) => Promise<UploadResult>,
  ): Promise<UploadResult> {
    const name = recordName(fresh);
    this.#latestJobs.set(name, job);
    let running = this.#running.get(name);
    if (running === undefined) {
      running = this.#start(fresh, upload).finally(() => this.#running.delete(name));
      this.#running.set(name, running);
    }
    try {
      const result = await running;
      await this.#succeeded(job, fresh, result.externalId);
      return result;
    } catch (error) {
      // A provider cleans up after a failed upload, unless it could not reach the cloud or was aborted.
      await this.#end(job, fresh, isRetriable(error) || job.signal.aborted || job.connectionLost.aborted);
      throw error;
    }
  }

  async #start(
    fresh: UploadRecord,
    upload: (record: UploadRecord) => Promise<UploadResult>,
  ): Promise<UploadResult> {
    await this.#orphaned.reclaim(fresh);
    const { 'external-id': _, ...record } = this.#records.get(fresh) ?? fresh;
    await this.#records.put(record);
    return await upload(record);
  }

  async #succeeded(job: TrackedJob, key: UploadKey, externalId: string): Promise<void> {
    const record = this.#records.get(key);
    if (record === undefined || !this.#isLatest(job, key)) return;
    // From here on the client may know the image, so it must not be discarded even if the result seems lost.
    if (!job.connectionLost.aborted) await this.#records.put({ ...record, 'external-id': externalId });
    if (!this.#isLatest(job, key)) return;
    if (!job.connectionLost.aborted) {
      void job.acknowledged.then(() => this.#end(job, key, job.connectionLost.aborted));
      return;
    }
    // The result is lost. Either the job comes again, or the image becomes an orphan.
    await this.#records.put(record);
    await this.#end(job, key, true);
  }

  /** Ends the record of an upload, unless a later job has taken the upload over. */
  async #end(job: TrackedJob, key: UploadKey, isOrphan: boolean): Promise<void> {
    const record = this.#records.get(key);
    if (record === undefined || !this.#isLatest(job, key)) return;
    this.#latestJobs.delete(recordName(key));
    if (isOrphan) {
      this.#orphaned.add(record);
      return;
    }
    await this.#records.remove(record).catch((error: unknown) => {
      this.#logger.warn(
        `the record of the upload of ${record['image-id']} was not removed: ${String(error)}`,
      );
    });
  }

  #isLatest(job: TrackedJob, key: UploadKey): boolean {
    return this.#latestJobs.get(recordName(key)) === job;
  }
}

/** True if the provider may have been unable to clean up. */
function isRetriable(error: unknown): boolean {
  return error instanceof Error && 'retriable' in error && error.retriable === true;
}
