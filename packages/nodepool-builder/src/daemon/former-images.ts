import { setTimeout as delay } from 'node:timers/promises';
import type { FunctionStatus, ServerAddress } from '@nodepool-builder/gearman-node';
import type { Logger } from '@nodepool-builder/image-builder';
import { askServers } from './ask-servers.ts';
import { subjectOf } from './functions.ts';

/**
 * Milliseconds between two scans, and time limit of a scan: a job is answered within 10 s, even if one of several
 * job servers does not reply.
 */
const INTERVAL = 2_000;

/** Maximum number of remembered ids; the oldest are dropped. */
const MAX_REMEMBERED = 10_000;

/** Settings of {@link FormerImages}. */
export interface FormerImagesOptions {
  readonly servers: readonly ServerAddress[];
  /** Called when {@link FormerImages.waiting} has changed. */
  readonly onChange: () => void;
  readonly logger: Logger;
  /** Milliseconds between two scans of the job servers. Default 2,000. */
  readonly interval?: number | undefined;
}

/**
 * Finds jobs for images that this process offered and no longer has. Without a builder that
 * offers their functions, these jobs and their clients would wait for ever.
 *
 * A job counts as waiting once two consecutive scans found no builder that offers its function: a builder
 * that has the image may be reconnecting.
 */
export class FormerImages {
  readonly #options: FormerImagesOptions;
  readonly #stop = new AbortController();
  readonly #former = new Set<string>();
  #offered: ReadonlySet<string> = new Set();
  /** Functions with waiting jobs in the last scan. */
  #suspects: ReadonlySet<string> = new Set();
  #waiting: ReadonlySet<string> = new Set();
  #scanning: Promise<void> | undefined;

  constructor(options: FormerImagesOptions) {
    this.#options = options;
  }

  /** Functions to offer until the waiting jobs are answered. */
  get waiting(): ReadonlySet<string> {
    return this.#waiting;
  }

  /** Sets the ids of the images that are offered now. */
  update(offered: ReadonlySet<string>): void {
    for (const id of this.#offered) if (!offered.has(id)) this.#former.add(id);
    for (const id of this.#former) {
      if (offered.has(id) || this.#former.size > MAX_REMEMBERED) this.#former.delete(id);
    }
    this.#offered = offered;
    this.#waiting = new Set([...this.#waiting].filter((name) => this.#former.has(subjectOf(name))));
    if (this.#former.size > 0 && !this.#stop.signal.aborted) this.#scanning ??= this.#scan();
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#scanning;
  }

  /** Scans until no image is missing. */
  async #scan(): Promise<void> {
    const { signal } = this.#stop;
    const { servers, interval = INTERVAL } = this.#options;
    while (this.#former.size > 0) {
      await delay(interval, undefined, { signal }).catch(() => {});
      // Job servers that do not answer are asked in the next scan.
      const status = await askServers(servers, (admin) => admin.status(), signal, INTERVAL).catch(() => []);
      if (signal.aborted) return;
      this.#judge(status);
    }
    this.#scanning = undefined;
  }

  #judge(status: readonly FunctionStatus[]): void {
    const suspects = new Set<string>();
    const waiting = new Set<string>();
    for (const [name, lines] of Map.groupBy(status, (line) => line.name)) {
      if (!/^image-(?:upload|delete):/.test(name) || !this.#former.has(subjectOf(name))) continue;
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
      this.#options.logger.warn(`${name} is answered: a job waits for it, and the image is no longer here`);
    }
    if (added.length === 0 && waiting.size === this.#waiting.size) return;
    this.#waiting = waiting;
    this.#options.onChange();
  }
}
