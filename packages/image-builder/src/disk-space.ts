import type { PathLike, Stats } from 'node:fs';
import { lstat, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { unlessAborted } from './cancellation.ts';
import { entryPaths } from './directory-entries.ts';
import { Mutex } from './repository/mutex.ts';
import { errnoOf } from './system-error.ts';
import type { OperationOptions } from './types.ts';

/** Size of a block in the result of stat(2), in bytes, on every file system. */
export const STAT_BLOCK = 512;

/**
 * Milliseconds between two checks of the free space while a request waits, because files outside a reservation may be
 * removed.
 */
const LOOK_INTERVAL = 5_000;

/** Maximum number of names in `waiting`. Further ones are only counted. */
const MAX_NAMES = 3;

/**
 * Minimum milliseconds between two measurements of a build. Slow measurements have longer pauses, so that they use
 * little CPU time.
 */
const MEASURE_INTERVAL = 10_000;
const SHARE = 1 / 500;

/** Signal of requests that nobody cancels. */
const NEVER = new AbortController().signal;

/** A request for disk space. */
export interface SpaceRequest {
  /** Name of the operation for those that wait for its end: `build of image debian-1`. */
  readonly name: string;
  /** File or directory to write. Its parent directory exists. */
  readonly path: string;
  /** Bytes still to be written; 0 if unknown. */
  readonly bytes: number;
  /** Returns the error for a number of missing bytes. */
  readonly tooLittle: (missing: number) => Error;
}

/** Reserved space, until {@link Reservation.release}. */
export class Reservation {
  readonly name: string;
  /** Total bytes, including those already written. */
  #bytes: number;
  readonly paths: string[];
  /** Maximum number of bytes that were measured at one time. */
  peak = 0;
  readonly #onRelease: (reservation: Reservation) => void;
  #timer: NodeJS.Timeout | undefined;
  #released = false;

  constructor(name: string, bytes: number, paths: readonly string[], onRelease: (one: Reservation) => void) {
    this.name = name;
    this.#bytes = bytes;
    this.paths = [...paths];
    this.#onRelease = onRelease;
  }

  /** Measures the bytes that its files use now, and those still to be written. */
  async measure(): Promise<{ readonly written: number; readonly due: number }> {
    const written = await spaceTaken(this.paths);
    this.peak = Math.max(this.peak, written);
    return { written, due: Math.max(0, this.#bytes - written) };
  }

  /** Measures at intervals until the release, to find the peak. */
  watch(delay: number = MEASURE_INTERVAL): void {
    if (this.#released) return;
    this.#timer = setTimeout(() => void this.#measureAgain(), delay).unref();
  }

  async #measureAgain(): Promise<void> {
    const started = performance.now();
    await this.measure().catch(() => {}); // the peak is unchanged
    this.watch(Math.max(MEASURE_INTERVAL, (performance.now() - started) / SHARE));
  }

  /** Adds a path, with the bytes that it already uses. */
  include(path: string, bytes: number): void {
    if (this.paths.includes(path)) return;
    this.paths.push(path);
    this.#bytes += bytes;
  }

  release(): void {
    clearTimeout(this.#timer);
    this.#released = true;
    this.#onRelease(this);
  }
}

/**
 * Free space of one file system, which concurrent operations reserve before they write. Requests are granted in their
 * order. A request that does not fit waits until others end, or fails once it is first if their end cannot help.
 * Reservations are kept in memory, so none outlives the process.
 */
export class DiskSpaceGuard {
  readonly #reservations = new Set<Reservation>();
  /** Requests that are not granted yet, in their order. */
  readonly #queue = new Set<SpaceRequest>();
  readonly #turns = new Mutex();
  /** Resolves when free space may have changed. */
  #changed = Promise.withResolvers<void>();

  /**
   * Waits for the space of a request. `onProgress` gets the operations for which it waits.
   *
   * @throws the error of `tooLittle` if the end of all other operations would not free enough
   * @throws the signal's reason
   */
  async reserve(request: SpaceRequest, options: OperationOptions = {}): Promise<Reservation> {
    return await this.#wait(request, request.bytes, [request.path], options);
  }

  /** Runs work with reserved space. @throws like {@link reserve} */
  async during<T>(request: SpaceRequest, work: () => Promise<T>, options?: OperationOptions): Promise<T> {
    const reservation = await this.reserve(request, options);
    try {
      return await work();
    } finally {
      reservation.release();
    }
  }

  /**
   * Adds a path to a reservation. Replaces the reservation if it is too small. While this call waits, only the written
   * bytes count, because otherwise two operations could wait for each other forever.
   *
   * @throws like {@link reserve}
   */
  async extend(
    held: Reservation,
    request: SpaceRequest,
    options: OperationOptions = {},
  ): Promise<Reservation> {
    const { path, bytes } = request;
    const { due } = await held.measure();
    if (due >= bytes) {
      if (!held.paths.includes(path)) held.include(path, await spaceTaken([path]));
      return held;
    }
    const paths = [...new Set([...held.paths, path])];
    held.release();
    const larger = await this.#wait(request, bytes + (await spaceTaken(paths)), paths, options);
    larger.peak = Math.max(larger.peak, held.peak);
    return larger;
  }

  async #wait(
    request: SpaceRequest,
    total: number,
    paths: readonly string[],
    { signal = NEVER, onProgress }: OperationOptions,
  ): Promise<Reservation> {
    signal.throwIfAborted();
    const reservation = new Reservation(request.name, total, paths, (released) => {
      if (this.#reservations.delete(released)) this.#wake();
    });
    if (request.bytes === 0) {
      this.#reservations.add(reservation);
      return reservation;
    }
    let told: string | undefined;
    const tell = (): void => {
      const earlier = [...this.#queue].slice(0, [...this.#queue].indexOf(request));
      const waiting = `disk space, held by ${listed([...this.#reservations, ...earlier].map(({ name }) => name))}`;
      if (waiting !== told) onProgress?.({ done: 0, total: 100, waiting });
      told = waiting;
    };
    this.#queue.add(request);
    if (this.#queue.size > 1) tell();
    const turn = this.#turns.run(async () => {
      for (;;) {
        const changed = this.#changed.promise; // taken first, because space may be freed during the measurement
        if (await this.#grant(reservation, request, signal)) return;
        tell();
        const timer = setTimeout(() => this.#wake(), LOOK_INTERVAL);
        await changed;
        clearTimeout(timer);
      }
    });
    try {
      await unlessAborted(turn, signal);
      if (told !== undefined) onProgress?.({ done: 0, total: 100 });
      return reservation;
    } finally {
      this.#queue.delete(request);
      if (signal.aborted) this.#wake();
    }
  }

  #wake(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }

  /** Grants a request if it fits now. @throws the error of `tooLittle` if it never can; the signal's reason */
  async #grant(reservation: Reservation, request: SpaceRequest, signal: AbortSignal): Promise<boolean> {
    signal.throwIfAborted();
    // In this order, bytes written between the two measurements count twice rather than not at all.
    const states = await Promise.all([...this.#reservations].map((held) => held.measure()));
    const due = states.reduce((sum, state) => sum + state.due, 0);
    const missing = due + request.bytes - (await freeSpace(request.path));
    signal.throwIfAborted();
    const reclaimable = states.reduce((sum, state) => sum + state.due + state.written, 0);
    if (missing > reclaimable) throw request.tooLittle(missing - reclaimable);
    if (missing <= 0) this.#reservations.add(reservation);
    return missing <= 0;
  }
}

/** Bytes on disk that files use, and directories with all their files on the same file system. */
export async function spaceTaken(paths: readonly string[]): Promise<number> {
  const counted = new Set<number>();
  let sum = 0;
  for (const path of paths) {
    const root = await stateOf(path);
    if (root !== undefined) sum += await treeSize(Buffer.from(path), root, counted);
  }
  return sum;
}

/** @param counted inodes of files with several names */
async function treeSize(path: Buffer, state: Stats, counted: Set<number>): Promise<number> {
  if (!state.isDirectory()) {
    if (state.nlink > 1 && counted.has(state.ino)) return 0;
    if (state.nlink > 1) counted.add(state.ino);
    return state.blocks * STAT_BLOCK;
  }
  const children = (await entryPaths(path).catch(unlessUnreadable)) ?? [];
  let sum = state.blocks * STAT_BLOCK;
  for (const childPath of children) {
    const child = await stateOf(childPath);
    // A directory of another device is a mount.
    if (child?.dev === state.dev) sum += await treeSize(childPath, child, counted);
  }
  return sum;
}

/** Reads the state of a file or directory; undefined if it is missing or this user may not see it. */
export async function stateOf(path: PathLike): Promise<Stats | undefined> {
  return await lstat(path).catch(unlessUnreadable);
}

/**
 * Ignores the error of a missing or unreadable file, because builds remove files while they are counted, and use sudo.
 */
export function unlessUnreadable(error: unknown): undefined {
  if (!['ENOENT', 'ENOTDIR', 'EACCES', 'EPERM'].includes(errnoOf(error) ?? '')) throw error;
}

async function freeSpace(path: string): Promise<number> {
  const { bavail, bsize } = await statfs(dirname(path));
  return bavail * bsize;
}

function listed(names: readonly string[]): string {
  const more = names.length - MAX_NAMES;
  const shown = more > 0 ? [...names.slice(0, MAX_NAMES), `${more} more`] : names;
  return shown.join(', ');
}
