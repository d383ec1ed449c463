import type { BigIntStats } from 'node:fs';
import { lstat } from 'node:fs/promises';
import { basename } from 'node:path';
import { syncToDisk } from '../durable.ts';
import { checksumsOf } from '../hashed-reader.ts';
import { fileKey, findWriters } from '../repository/writers.ts';
import { unlessMissing } from '../system-error.ts';
import type { Checksums } from '../types.ts';

/** Milliseconds between two looks at the files of a build. */
const INTERVAL = 1_000;

/** Milliseconds without a change after which a file may be finished. */
const QUIET_PERIOD = 2_000;

/** Readings of one file: a build that changes it again and again gets its checksums at the end. */
const ATTEMPTS = 2;

/** Settings of {@link FinishedFiles}. */
export interface FinishedFilesOptions {
  /** Default {@link INTERVAL}. */
  readonly interval?: number;
  /** Default {@link QUIET_PERIOD}. */
  readonly quietPeriod?: number;
  /** Called with a path when its checksums are known. */
  readonly onHashed?: (path: string) => void;
}

/** Reading of a file that looked finished. */
interface Reading {
  readonly state: BigIntStats;
  readonly attempt: number;
  /** Undefined if the file changed meanwhile. */
  readonly checksums: Promise<Checksums | undefined>;
  isOver: boolean;
}

/**
 * Computes the checksums of files that a build has finished, and flushes them to the disk, while the build still makes
 * others or is being validated. A file that changes later gets its checksums when the build has ended.
 */
export class FinishedFiles {
  readonly #paths: Set<string>;
  readonly #quietPeriod: number;
  readonly #onHashed: (path: string) => void;
  readonly #readings = new Map<string, Reading>();
  readonly #closing = new AbortController();
  readonly #timer: NodeJS.Timeout;
  /** The last look or reading: one at a time. */
  #last: Promise<unknown> = Promise.resolve();
  #isLooking = false;

  /** @param paths of the files that the build makes */
  constructor(
    paths: readonly string[],
    { interval = INTERVAL, quietPeriod = QUIET_PERIOD, onHashed = () => {} }: FinishedFilesOptions = {},
  ) {
    this.#paths = new Set(paths);
    this.#quietPeriod = quietPeriod;
    this.#onHashed = onHashed;
    this.#timer = setInterval(() => this.#look(), interval);
  }

  /** Watches one more file: the build will rename it to one of those that it makes. */
  add(path: string): void {
    this.#paths.add(path);
  }

  /**
   * Ends the looks. Returns the checksums of a file if it has been read and has not changed since.
   *
   * @param mayWait whether to wait for a reading that is not over
   */
  async checksums(path: string, mayWait = true): Promise<Checksums | undefined> {
    clearInterval(this.#timer);
    const reading = this.#readingOf(path, await stateOf(path));
    return reading?.isOver || mayWait ? await reading?.checksums : undefined;
  }

  /** Stops all work, and waits for its end. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#closing.abort();
    await this.#last;
  }

  #look(): void {
    if (this.#isLooking) return;
    this.#isLooking = true;
    this.#last = this.#readFinished()
      .catch(() => {}) // the build reads these files once more, and reports the error
      .finally(() => {
        this.#isLooking = false;
      });
  }

  async #readFinished(): Promise<void> {
    const quiet = new Map<string, BigIntStats>();
    for (const path of this.#paths) {
      const state = await stateOf(path);
      if (state !== undefined && this.#isQuiet(path, state)) quiet.set(path, state);
    }
    if (quiet.size === 0) return;
    const writers = await findWriters(Array.from(quiet.keys(), (path) => basename(path)));
    for (const [path, state] of quiet) {
      this.#closing.signal.throwIfAborted();
      const key = fileKey({ dev: Number(state.dev), ino: Number(state.ino) });
      if (!writers.files.has(key)) await this.#read(path, state);
    }
  }

  /** The reading of a file that has not changed since, under its path or the one that it had then. */
  #readingOf(path: string, state: BigIntStats | undefined): Reading | undefined {
    for (const [name, reading] of this.#readings) {
      if (name === path ? isSame(reading.state, state) : isRenamed(reading.state, state)) return reading;
    }
    return undefined;
  }

  #isQuiet(path: string, state: BigIntStats): boolean {
    if ((this.#readings.get(path)?.attempt ?? 0) >= ATTEMPTS) return false;
    if (this.#readingOf(path, state) !== undefined) return false;
    // The time of the last change, which no program can set.
    return state.isFile() && state.size > 0n && Date.now() - Number(state.ctimeMs) >= this.#quietPeriod;
  }

  async #read(path: string, state: BigIntStats): Promise<void> {
    const { signal } = this.#closing;
    const read = async (): Promise<Checksums> => {
      const [checksums] = await Promise.all([checksumsOf(path, { signal }), syncToDisk(path)]);
      return checksums;
    };
    const checksums = read().catch(() => undefined);
    const attempt = (this.#readings.get(path)?.attempt ?? 0) + 1;
    const reading: Reading = { state, attempt, checksums, isOver: false };
    this.#readings.set(path, reading);
    const isKnown = (await checksums) !== undefined;
    reading.isOver = true;
    if (isKnown) this.#onHashed(path);
  }
}

async function stateOf(path: string): Promise<BigIntStats | undefined> {
  return await unlessMissing(lstat(path, { bigint: true }));
}

/** Whether nothing wrote to a file in between: a write changes ctime, even if it restores mtime. */
function isSame(one: BigIntStats, other: BigIntStats | undefined): boolean {
  return one.ctimeNs === other?.ctimeNs && isRenamed(one, other);
}

/** Whether a file was renamed, which changes its ctime, and nothing wrote to it in between. */
function isRenamed(one: BigIntStats, other: BigIntStats | undefined): boolean {
  return (
    one.mtimeNs === other?.mtimeNs &&
    one.size === other.size &&
    one.ino === other.ino &&
    one.dev === other.dev
  );
}
