import { setTimeout as delay } from 'node:timers/promises';
import type { Admin, FunctionStatus, ServerAddress } from '@nodepool-builder/gearman-node';
import type { Logger } from '@nodepool-builder/image-builder';
import { imageFunctions, subjectOf } from '../protocol/functions.ts';
import { askServers } from '../site/ask-servers.ts';

/**
 * Milliseconds between two scans, and timeout of a scan. A job gets its reply within 10 s, even if one of several job
 * servers does not reply.
 */
const INTERVAL = 2_000;

/** Minimum pause between two scans as a multiple of a scan's duration, because many functions take long to list. */
const PAUSE_FACTOR = 9;

/** Maximum number of remembered ids; the oldest are dropped. */
const MAX_REMEMBERED = 10_000;

/** Settings of {@link FormerImages}. */
export interface FormerImagesOptions {
  readonly servers: readonly ServerAddress[];
  /** Called with each function that a scan has added to {@link FormerImages.waiting} or removed from it. */
  readonly onChange: (name: string) => void;
  readonly logger: Logger;
  /** Milliseconds between two scans of the job servers. Default 2,000. */
  readonly interval?: number | undefined;
}

/**
 * Finds jobs for images that this process offered and no longer has. Without a builder that offers their functions,
 * these jobs and their clients would wait forever.
 *
 * A job counts as waiting once two consecutive scans found no builder that offers its function, because a builder that
 * has the image may be reconnecting.
 */
export class FormerImages {
  readonly #options: FormerImagesOptions;
  readonly #stop = new AbortController();
  readonly #former = new Set<string>();
  /** Functions with waiting jobs in the last scan. */
  #suspects: ReadonlySet<string> = new Set();
  #waiting = new Set<string>();
  #scanning: Promise<void> | undefined;

  constructor(options: FormerImagesOptions) {
    this.#options = options;
  }

  /** Functions to offer until the waiting jobs have ended. */
  get waiting(): ReadonlySet<string> {
    return this.#waiting;
  }

  /** Remembers an image that was offered and has disappeared. */
  add(imageId: string): void {
    this.#former.add(imageId);
    for (const oldest of this.#former) {
      if (this.#former.size <= MAX_REMEMBERED) break;
      this.#former.delete(oldest);
    }
    if (!this.#stop.signal.aborted) this.#scanning ??= this.#scan();
  }

  /** Forgets an image that has appeared. */
  delete(imageId: string): void {
    this.#former.delete(imageId);
    for (const name of imageFunctions(imageId)) this.#waiting.delete(name);
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#scanning;
  }

  /** Scans until no image is missing. */
  async #scan(): Promise<void> {
    const { signal } = this.#stop;
    const { servers, interval = INTERVAL } = this.#options;
    let pause = interval;
    while (this.#former.size > 0) {
      await delay(pause, undefined, { signal }).catch(() => {});
      pause = interval;
      const list = async (admin: Admin): Promise<FunctionStatus[]> => {
        const began = performance.now();
        const lines = await admin.status(({ name }) => this.#isFormer(name));
        pause = Math.max(pause, PAUSE_FACTOR * (performance.now() - began));
        return lines;
      };
      // Job servers that do not reply are queried in the next scan.
      const status = await askServers(servers, list, signal, INTERVAL).catch(() => []);
      if (signal.aborted) return;
      this.#judge(status);
    }
    this.#scanning = undefined;
  }

  #isFormer(name: string): boolean {
    return /^image-(?:upload|delete):/.test(name) && this.#former.has(subjectOf(name));
  }

  #judge(status: readonly FunctionStatus[]): void {
    const suspects = new Set<string>();
    const waiting = new Set<string>();
    // Most functions have no job. Grouping all functions of 10,000 images would block the event loop.
    const busy = new Set(status.filter(({ total }) => total > 0).map(({ name }) => name));
    const candidates = status.filter(({ name }) => busy.has(name));
    for (const [name, lines] of Map.groupBy(candidates, (line) => line.name)) {
      if (!this.#isFormer(name)) continue; // it has appeared during the scan
      const offers = Math.max(...lines.map(({ availableWorkers }) => availableWorkers));
      if (this.#waiting.has(name)) {
        // One connection to each server is our own.
        if (offers <= 1 && lines.some(({ total }) => total > 0)) waiting.add(name);
      } else if (offers === 0 && lines.some(({ total, running }) => total > running)) {
        suspects.add(name);
        if (this.#suspects.has(name)) waiting.add(name);
      }
    }
    this.#suspects = suspects;
    const added = [...waiting].filter((name) => !this.#waiting.has(name));
    for (const name of added) {
      this.#options.logger.warn(`offering ${name} again: a job waits for it, and the image was removed`);
    }
    const lost = [...this.#waiting].filter((name) => !waiting.has(name));
    this.#waiting = waiting;
    for (const name of [...added, ...lost]) this.#options.onChange(name);
  }
}
