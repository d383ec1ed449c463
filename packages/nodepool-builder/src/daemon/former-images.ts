import { setTimeout as delay } from 'node:timers/promises';
import type { FunctionStatus, ServerAddress } from '@nodepool-builder/gearman-node';
import type { Logger } from '@nodepool-builder/image-builder';
import { askServers } from './ask-servers.ts';
import { subjectOf, type Verb } from './functions.ts';

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
  #offered: ReadonlySet<string> = new Set();
  readonly #former = new Set<string>();
  /** Functions with waiting jobs in the last scan. */
  #suspects: ReadonlySet<string> = new Set();
  #waiting: ReadonlyMap<string, Verb> = new Map();
  #looking: Promise<void> | undefined;

  constructor(options: FormerImagesOptions) {
    this.#options = options;
  }

  /** Functions to offer until the waiting jobs are answered. */
  get waiting(): ReadonlyMap<string, Verb> {
    return this.#waiting;
  }

  /** Sets the ids of the images that are offered now. */
  update(offered: ReadonlySet<string>): void {
    for (const id of this.#offered) if (!offered.has(id)) this.#former.add(id);
    for (const id of this.#former) {
      if (offered.has(id) || this.#former.size > MAX_REMEMBERED) this.#former.delete(id);
    }
    this.#offered = offered;
    this.#waiting = new Map([...this.#waiting].filter(([name]) => this.#former.has(subjectOf(name))));
    if (this.#former.size > 0 && !this.#stop.signal.aborted) this.#looking ??= this.#lookOn();
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#looking;
  }

  /** Scans until no image is missing. */
  async #lookOn(): Promise<void> {
    const { signal } = this.#stop;
    const { servers, interval = INTERVAL } = this.#options;
    while (this.#former.size > 0) {
      await delay(interval, undefined, { signal }).catch(() => {});
      // Job servers that do not answer are asked in the next scan.
      const status = await askServers(servers, (admin) => admin.status(), signal, INTERVAL).catch(() => []);
      if (signal.aborted) return;
      this.#judge(status);
    }
    this.#looking = undefined;
  }

  #judge(status: readonly FunctionStatus[]): void {
    const suspects = new Set<string>();
    const waiting = new Map<string, Verb>();
    for (const [name, { total, queued, offers }] of totals(status)) {
      const verb = this.#verbOf(name);
      if (verb === undefined) continue;
      // One connection to each server is our own.
      if (this.#waiting.has(name) && total > 0 && offers <= 1) waiting.set(name, verb);
      if (this.#waiting.has(name) || queued === 0 || offers > 0) continue;
      suspects.add(name);
      if (this.#suspects.has(name)) waiting.set(name, verb);
    }
    this.#suspects = suspects;
    const added = [...waiting.keys()].filter((name) => !this.#waiting.has(name));
    for (const name of added) {
      this.#options.logger.warn(`${name} is answered: a job waits for it, and the image is no longer here`);
    }
    if (added.length === 0 && waiting.size === this.#waiting.size) return;
    this.#waiting = waiting;
    this.#options.onChange();
  }

  /** The verb of a function of an image that is no longer here; undefined for any other function. */
  #verbOf(name: string): Verb | undefined {
    if (!this.#former.has(subjectOf(name))) return undefined;
    return (['image-upload', 'image-delete'] as const).find((verb) => name.startsWith(`${verb}:`));
  }
}

/** Status of a function, summed over all job servers. */
interface Totals {
  readonly total: number;
  readonly queued: number;
  /** Connections that offer the function, at the server with most of them. */
  readonly offers: number;
}

function totals(status: readonly FunctionStatus[]): ReadonlyMap<string, Totals> {
  const sums = new Map<string, Totals>();
  for (const { name, total, running, availableWorkers } of status) {
    const before = sums.get(name) ?? { total: 0, queued: 0, offers: 0 };
    sums.set(name, {
      total: before.total + total,
      queued: before.queued + total - running,
      offers: Math.max(before.offers, availableWorkers),
    });
  }
  return sums;
}
