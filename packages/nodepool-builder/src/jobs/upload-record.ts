import type { WorkerJob } from '@nodepool-builder/gearman-node';
import type { Logger, UploadResult } from '@nodepool-builder/image-builder';
import type { AbandonedUploads } from './abandoned-uploads.ts';
import type { LedgerEntry, UploadKey, UploadLedger } from './upload-ledger.ts';

/** The job of an upload, as far as the record needs it. */
export type RecordedJob = Pick<WorkerJob, 'acknowledged' | 'connectionLost' | 'signal'>;

/**
 * Keeps the ledger true: an upload is in it from before it begins until the job server has had its answer. An upload
 * that is asked for again while it runs is not begun twice.
 */
export class UploadRecord {
  readonly #ledger: UploadLedger;
  readonly #abandoned: AbandonedUploads;
  readonly #logger: Logger;
  readonly #flights = new Map<string, Promise<UploadResult>>();
  /** Who asked last for each upload: a job server hands a job out again when it lost sight of this builder. */
  readonly #askers = new Map<string, RecordedJob>();

  constructor(ledger: UploadLedger, abandoned: AbandonedUploads, logger: Logger) {
    this.#ledger = ledger;
    this.#abandoned = abandoned;
    this.#logger = logger;
  }

  /**
   * Runs an upload on record. `upload` gets the entry of the first try, if there was one: another try is the same
   * upload, under the same name.
   */
  async run(
    job: RecordedJob,
    fresh: LedgerEntry,
    upload: (entry: LedgerEntry) => Promise<UploadResult>,
  ): Promise<UploadResult> {
    const key = keyOf(fresh);
    this.#askers.set(key, job);
    let flight = this.#flights.get(key);
    if (flight === undefined) {
      flight = this.#begin(fresh, upload).finally(() => this.#flights.delete(key));
      this.#flights.set(key, flight);
    }
    try {
      const result = await flight;
      await this.#succeeded(job, fresh, result.externalId);
      return result;
    } catch (error) {
      await this.#failed(job, fresh, error);
      throw error;
    }
  }

  async #begin(
    fresh: LedgerEntry,
    upload: (entry: LedgerEntry) => Promise<UploadResult>,
  ): Promise<UploadResult> {
    await this.#abandoned.reclaim(fresh);
    const { 'external-id': _, ...entry } = this.#ledger.get(fresh) ?? fresh;
    await this.#ledger.put(entry);
    return await upload(entry);
  }

  async #succeeded(job: RecordedJob, key: UploadKey, externalId: string): Promise<void> {
    const entry = this.#ledger.get(key);
    if (entry === undefined || !this.#isLatest(job, key)) return;
    const answered = { ...entry, 'external-id': externalId };
    // From here on the client may know the image, so that it must not be discarded if the answer seems lost.
    if (!job.connectionLost.aborted) await this.#ledger.put(answered);
    if (!this.#isLatest(job, key)) return;
    if (!job.connectionLost.aborted) {
      void this.#forgetWhenAcknowledged(job, answered);
      return;
    }
    // The answer goes nowhere. The job comes again, or nobody wants the image.
    await this.#ledger.put(entry);
    if (this.#isLatest(job, key)) this.#abandon(entry);
  }

  /** A provider removes what its failed upload left, unless it could not reach the cloud, or had to stop. */
  async #failed(job: RecordedJob, key: UploadKey, error: unknown): Promise<void> {
    const entry = this.#ledger.get(key);
    if (entry === undefined || !this.#isLatest(job, key)) return;
    if (isTransient(error) || job.signal.aborted || job.connectionLost.aborted) this.#abandon(entry);
    else await this.#forget(entry);
  }

  async #forgetWhenAcknowledged(job: RecordedJob, entry: LedgerEntry): Promise<void> {
    await job.acknowledged;
    if (!this.#isLatest(job, entry)) return;
    if (job.connectionLost.aborted) this.#abandon(entry);
    else await this.#forget(entry);
  }

  #isLatest(job: RecordedJob, key: UploadKey): boolean {
    return this.#askers.get(keyOf(key)) === job;
  }

  #abandon(entry: LedgerEntry): void {
    this.#askers.delete(keyOf(entry));
    this.#abandoned.add(entry);
  }

  async #forget(entry: LedgerEntry): Promise<void> {
    this.#askers.delete(keyOf(entry));
    await this.#ledger.remove(entry).catch((error: unknown) => {
      this.#logger.warn(`upload of ${entry['image-id']} stays on record: ${String(error)}`);
    });
  }
}

function keyOf({ provider, 'upload-id': uploadId }: UploadKey): string {
  return JSON.stringify([provider, uploadId]);
}

/** Whether the provider may not have been able to clean up. */
function isTransient(error: unknown): boolean {
  return error instanceof Error && 'retriable' in error && error.retriable === true;
}
