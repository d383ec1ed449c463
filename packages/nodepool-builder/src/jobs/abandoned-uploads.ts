import type { ImageProvider, Logger } from '@nodepool-builder/image-builder';
import type { LedgerEntry, UploadKey, UploadLedger } from './upload-ledger.ts';

/** How long the job of an upload has to come back, in milliseconds. */
export const DEFAULT_GRACE_PERIOD = 120_000;

/** The pause after a round in which a provider could not be reached: doubled each time, up to the last. */
const FIRST_PAUSE = 10_000;
const LAST_PAUSE = 600_000;

/** What {@link AbandonedUploads} works with. */
export interface AbandonedUploadsOptions {
  readonly ledger: UploadLedger;
  /** Undefined for a provider that is not configured now. */
  readonly provider: (name: string) => ImageProvider | undefined;
  readonly logger: Logger;
  /** Milliseconds. Default 120,000. */
  readonly gracePeriod?: number | undefined;
}

/**
 * Uploads that were begun and that no job of this process stands for: a crash, or the loss of a job server, came
 * between. A job that comes back reclaims its own. After a time nobody will, and the provider discards what they left.
 */
export class AbandonedUploads {
  readonly #options: AbandonedUploadsOptions;
  readonly #gracePeriod: number;
  readonly #waiting = new Map<LedgerEntry, NodeJS.Timeout>();
  /** Nobody came back for these. */
  readonly #due = new Set<LedgerEntry>();
  readonly #discards = new Map<LedgerEntry, Promise<boolean>>();
  readonly #stop = new AbortController();
  #round: Promise<void> | undefined;
  #pause = FIRST_PAUSE;
  #nextRound: NodeJS.Timeout | undefined;

  constructor(options: AbandonedUploadsOptions) {
    this.#options = options;
    this.#gracePeriod = options.gracePeriod ?? DEFAULT_GRACE_PERIOD;
  }

  /** From now on the job of this upload may come back, for the grace period. */
  add(entry: LedgerEntry): void {
    if (this.#stop.signal.aborted) return;
    const timer = setTimeout(() => {
      this.#waiting.delete(entry);
      this.#due.add(entry);
      this.#startRound();
    }, this.#gracePeriod);
    this.#waiting.set(entry, timer.unref());
  }

  /** The job is there again: its upload is left alone. Waits for a discard of it that is under way. */
  async reclaim(key: UploadKey): Promise<void> {
    for (const entry of [...this.#waiting.keys(), ...this.#due]) {
      if (entry.provider !== key.provider || entry['upload-id'] !== key['upload-id']) continue;
      clearTimeout(this.#waiting.get(entry));
      this.#waiting.delete(entry);
      this.#due.delete(entry);
      await this.#discards.get(entry);
    }
  }

  /** Tries at once what failed or had no provider. */
  retry(): void {
    this.#pause = FIRST_PAUSE;
    this.#startRound();
  }

  /** Resolves when nothing is being discarded. */
  async idle(): Promise<void> {
    await this.#round;
  }

  /** Stops; what is left stays in the ledger for the next process. */
  async close(): Promise<void> {
    this.#stop.abort(new Error('the builder is being stopped'));
    for (const timer of this.#waiting.values()) clearTimeout(timer);
    clearTimeout(this.#nextRound);
    await this.idle();
  }

  #startRound(): void {
    clearTimeout(this.#nextRound);
    if (this.#stop.signal.aborted || this.#due.size === 0) return;
    this.#round = (this.#round ?? Promise.resolve()).then(() => this.#discardDue());
  }

  /** Providers do not wait for each other; one provider is asked for one thing at a time. */
  async #discardDue(): Promise<void> {
    const byProvider = Map.groupBy(this.#due, ({ provider }) => provider);
    const done = await Promise.all(
      Array.from(byProvider, async ([name, entries]) => await this.#discardAll(name, entries)),
    );
    if (done.every(Boolean) || this.#stop.signal.aborted) {
      this.#pause = FIRST_PAUSE;
      return;
    }
    clearTimeout(this.#nextRound);
    this.#nextRound = setTimeout(() => this.#startRound(), this.#pause).unref();
    this.#pause = Math.min(this.#pause * 2, LAST_PAUSE);
  }

  /** Whether nothing is left that may succeed later by itself. */
  async #discardAll(providerName: string, entries: readonly LedgerEntry[]): Promise<boolean> {
    const { logger } = this.#options;
    const provider = this.#options.provider(providerName);
    if (provider === undefined) {
      const ids = entries.map((entry) => entry['image-id']).join(', ');
      const remedy = 'add it again and reload, or look there and remove the files';
      logger.warn(
        `provider "${providerName}" is not configured any more: what uploads of ${ids} left there stays; ${remedy}`,
      );
      return true;
    }
    for (const entry of entries) {
      // Its job may have come back, and the builder may be stopped, while others were discarded.
      if (!this.#due.has(entry) || this.#stop.signal.aborted) continue;
      const discard = this.#discard(provider, entry).finally(() => this.#discards.delete(entry));
      this.#discards.set(entry, discard);
      if (!(await discard)) return false;
    }
    return true;
  }

  async #discard(provider: ImageProvider, entry: LedgerEntry): Promise<boolean> {
    const { ledger, logger } = this.#options;
    const what = `upload of ${entry['image-id']} to ${provider.name}, begun ${entry.begun}`;
    try {
      if (entry['external-id'] === undefined) {
        await provider.discard(entry['upload-id'], { signal: this.#stop.signal });
        logger.info(`${what}: nobody asks for it any more; whatever it left is removed`);
      } else {
        // Its answer was on its way: to remove an image that nodepool knows of is worse than to leave one too many.
        logger.warn(`${what}: image ${entry['external-id']} stays, as it may have been answered`);
      }
      await ledger.remove(entry);
      this.#due.delete(entry);
      return true;
    } catch (error) {
      if (this.#stop.signal.aborted) return false;
      const reason = error instanceof Error ? error.message : String(error);
      logger.warn(`${what}: what it left cannot be removed now, it will be tried again: ${reason}`);
      return false;
    }
  }
}
