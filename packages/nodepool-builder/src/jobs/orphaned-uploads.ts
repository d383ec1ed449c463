import type { ImageProvider, Logger } from '@nodepool-builder/image-builder';
import { Mutex } from '@nodepool-builder/image-builder/module-kit';
import { reasonOf } from './job-reply.ts';
import type { UploadKey, UploadRecord, UploadRecords } from './upload-records.ts';

/** Time for the job of an orphaned upload to come back, in milliseconds. */
const GRACE_PERIOD = 120_000;

/** Pause after a round with a failure, in milliseconds; each further failure doubles it up to the limit. */
const FIRST_PAUSE = 10_000;
const LAST_PAUSE = 600_000;

/** Settings of {@link OrphanedUploads}. */
export interface OrphanedUploadsOptions {
  readonly records: UploadRecords;
  /** Returns a provider; undefined if it is not configured. */
  readonly provider: (name: string) => ImageProvider | undefined;
  readonly logger: Logger;
  /** Milliseconds. Default 120,000. */
  readonly gracePeriod?: number | undefined;
}

/**
 * Uploads on record without a job, after a crash or the loss of a job server. A job that comes back reclaims its
 * upload. After the grace period, the provider discards the upload.
 */
export class OrphanedUploads {
  readonly #options: OrphanedUploadsOptions;
  readonly #waiting = new Map<UploadRecord, NodeJS.Timeout>();
  /** Uploads whose grace period is over. */
  readonly #due = new Set<UploadRecord>();
  readonly #discards = new Map<UploadRecord, Promise<boolean>>();
  readonly #stop = new AbortController();
  readonly #rounds = new Mutex();
  #pause = FIRST_PAUSE;
  #nextRound: NodeJS.Timeout | undefined;

  constructor(options: OrphanedUploadsOptions) {
    this.#options = options;
  }

  /** Adds an upload and starts its grace period. */
  add(record: UploadRecord): void {
    if (this.#stop.signal.aborted) return;
    const timer = setTimeout(() => {
      this.#waiting.delete(record);
      this.#due.add(record);
      this.#startRound();
    }, this.#options.gracePeriod ?? GRACE_PERIOD);
    this.#waiting.set(record, timer.unref());
  }

  /** Removes an upload whose job came back. Waits for a running discard of it. */
  async reclaim(key: UploadKey): Promise<void> {
    for (const record of [...this.#waiting.keys(), ...this.#due]) {
      if (record.provider !== key.provider || record['upload-id'] !== key['upload-id']) continue;
      clearTimeout(this.#waiting.get(record));
      this.#waiting.delete(record);
      this.#due.delete(record);
      await this.#discards.get(record);
    }
  }

  /** Retries at once what failed or had no provider. */
  retry(): void {
    this.#pause = FIRST_PAUSE;
    this.#startRound();
  }

  /** Resolves when no discard is running. */
  async idle(): Promise<void> {
    await this.#rounds.idle();
  }

  /** Stops. The remaining uploads stay on record for the next process. */
  async close(): Promise<void> {
    this.#stop.abort(new Error('the builder is being stopped'));
    for (const timer of this.#waiting.values()) clearTimeout(timer);
    clearTimeout(this.#nextRound);
    await this.idle();
  }

  #startRound(): void {
    clearTimeout(this.#nextRound);
    if (this.#stop.signal.aborted || this.#due.size === 0) return;
    void this.#rounds.run(() => this.#discardDue());
  }

  /** Discards all due uploads: providers in parallel, the uploads of one provider one after the other. */
  async #discardDue(): Promise<void> {
    const byProvider = Map.groupBy(this.#due, ({ provider }) => provider);
    const done = await Promise.all(Array.from(byProvider, (group) => this.#discardAll(...group)));
    if (done.every(Boolean) || this.#stop.signal.aborted) {
      this.#pause = FIRST_PAUSE;
      return;
    }
    clearTimeout(this.#nextRound);
    this.#nextRound = setTimeout(() => this.#startRound(), this.#pause).unref();
    this.#pause = Math.min(this.#pause * 2, LAST_PAUSE);
  }

  /** Returns false if a retry may succeed. */
  async #discardAll(providerName: string, records: readonly UploadRecord[]): Promise<boolean> {
    const { logger } = this.#options;
    const provider = this.#options.provider(providerName);
    if (provider === undefined) {
      const ids = records.map((record) => record['image-id']).join(', ');
      logger.warn(
        `provider "${providerName}" is no longer configured; parts of the uploads of ${ids} may stay there; ` +
          'add it again and reload, or delete the files there by hand',
      );
      return true;
    }
    for (const record of records) {
      // While others were discarded, its job may have come back, or the builder may have been stopped.
      if (!this.#due.has(record) || this.#stop.signal.aborted) continue;
      const discard = this.#discard(provider, record).finally(() => this.#discards.delete(record));
      this.#discards.set(record, discard);
      if (!(await discard)) return false;
    }
    return true;
  }

  async #discard(provider: ImageProvider, record: UploadRecord): Promise<boolean> {
    const { records, logger } = this.#options;
    const upload = `upload of ${record['image-id']} to ${provider.name}, started ${record.begun}`;
    try {
      if (record['external-id'] === undefined) {
        await provider.discard(record['upload-id'], { signal: this.#stop.signal });
        logger.info(`${upload}: discarded, because its job did not come back`);
      } else {
        // The result was sent but not acknowledged. An orphan does less harm than a missing image that nodepool uses.
        logger.warn(`${upload}: image ${record['external-id']} stays, because the client may know it`);
      }
      await records.remove(record);
      this.#due.delete(record);
      return true;
    } catch (error) {
      if (this.#stop.signal.aborted) return false;
      logger.warn(`${upload}: it could not be discarded and is retried later: ${reasonOf(error)}`);
      return false;
    }
  }
}
