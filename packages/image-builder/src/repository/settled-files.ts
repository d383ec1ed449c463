import { lstatSync, type Stats } from 'node:fs';
import { join } from 'node:path';
import { inSlices } from '../slices.ts';
import { fileKey, findWriters, type Writers } from './writers.ts';

export type FileState = Pick<Stats, 'size' | 'mtimeMs' | 'dev' | 'ino'>;

/**
 * Reason for checking a file. `moved`: it was present at the start, or was moved, created or removed under its name.
 * `changed`: its content changed. `found`: a scan found it without an event. `again`: it was not settled before.
 */
export type Occasion = 'moved' | 'changed' | 'found' | 'again';

/** Milliseconds without a change after which a file counts as settled if its writer might be invisible. */
export const QUIET_PERIOD = 2_000;

/** Minimum and maximum delay between two checks of files that are not settled, in milliseconds. The delay doubles. */
const FIRST_DELAY = 25;
const LAST_DELAY = 1_000;

interface Unsettled {
  readonly state: FileState;
  /** Time of the last known change. */
  readonly lastChange: number;
  /** True if the file came without an event, because another host may be writing it over a network file system. */
  isRemote: boolean;
}

export interface SettledFilesOptions {
  /** Called with the names of files that must be checked again. */
  readonly onDue?: (names: readonly string[]) => void;
  /** Called for a file that has an image's name but is not an image, with the reason. */
  readonly onRefused?: (name: string, reason: string) => void;
  /** Replaces {@link findWriters} in tests. */
  readonly find?: (names: Iterable<string>) => Promise<Writers>;
}

/**
 * Tracks which files of a directory are complete, which are regular files with content that no process has open for
 * writing. If writers may be invisible (processes of other users or hosts), a file must also stay unchanged for a
 * while. Symbolic links are not followed, because they could point to any file of the host.
 */
export class SettledFiles {
  readonly #directory: string;
  readonly #options: SettledFilesOptions;
  readonly #settled = new Map<string, FileState>();
  readonly #unsettled = new Map<string, Unsettled>();
  #timer: NodeJS.Timeout | undefined;
  #dueAt = 0;
  #delay = FIRST_DELAY;

  constructor(directory: string, options: SettledFilesOptions = {}) {
    this.#directory = directory;
    this.#options = options;
  }

  get(name: string): FileState | undefined {
    return this.#settled.get(name);
  }

  /** Returns whether a file is known, settled or not. */
  has(name: string): boolean {
    return this.#settled.has(name) || this.#unsettled.has(name);
  }

  /** Names of all known files, settled or not. */
  names(): string[] {
    return [...this.#settled.keys(), ...this.#unsettled.keys()];
  }

  /** Adds a file that this process has completed. */
  add(name: string, state: FileState): void {
    this.#settled.set(name, compact(state));
    this.#unsettled.delete(name);
  }

  /** Removes a file. Returns whether it was settled. */
  delete(name: string): boolean {
    this.#unsettled.delete(name);
    return this.#settled.delete(name);
  }

  /** Checks files. Returns the names of those that became settled, are no longer settled, or have new content. */
  async check(names: Iterable<string>, occasionOf: (name: string) => Occasion): Promise<string[]> {
    const changes: string[] = [];
    const candidates = new Map<string, FileState>();
    await inSlices(names, (name) => {
      const waiting = this.#unsettled.get(name);
      if (waiting !== undefined && occasionOf(name) === 'changed') {
        waiting.isRemote = false;
        return; // the timer checks it, because a file that is being written changes all the time
      }
      const state = this.#stateOf(name);
      if (state === undefined) {
        if (this.delete(name)) changes.push(name);
      } else if (!isSame(state, this.#settled.get(name))) {
        candidates.set(name, state);
      }
    });
    let isMore = false;
    if (candidates.size > 0) {
      const { find = findWriters } = this.#options;
      const writers = await find(candidates.keys());
      await inSlices(candidates, ([name, before]) => {
        // Checked again, because a writer may have finished while the processes were scanned.
        const now = this.#stateOf(name);
        const isBusy = !isSame(before, now) || writers.files.has(fileKey(before));
        const unsettled = this.#unsettle(name, before, occasionOf(name));
        const needsQuiet = unsettled.isRemote || !writers.complete;
        if (!isBusy && (!needsQuiet || Date.now() - unsettled.lastChange >= QUIET_PERIOD)) {
          this.add(name, before);
          changes.push(name);
        } else {
          if (this.#settled.delete(name)) changes.push(name);
          isMore ||= !this.#unsettled.has(name);
          this.#unsettled.set(name, unsettled);
        }
      });
    }
    this.#schedule(isMore);
    return changes;
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#unsettled.clear();
  }

  /** State of a file that may be an image; undefined for anything else. */
  #stateOf(name: string): FileState | undefined {
    const state = readState(join(this.#directory, name));
    if (state === undefined) return undefined;
    const reason = skipReason(state);
    if (reason === undefined) return compact(state);
    // A file is empty for a moment when a program has just created it.
    const isNew = state.isFile() && Date.now() - state.mtimeMs < QUIET_PERIOD;
    if (!isNew) this.#options.onRefused?.(name, reason);
    return undefined;
  }

  #unsettle(name: string, state: FileState, occasion: Occasion): Unsettled {
    const now = Date.now();
    const before = this.#unsettled.get(name);
    const hadEvent = occasion === 'moved' || occasion === 'changed';
    const isRemote = !hadEvent && (before?.isRemote ?? true);
    // A time in the future comes from another clock.
    if (before === undefined) return { state, isRemote, lastChange: Math.min(state.mtimeMs, now) };
    return {
      state,
      isRemote,
      lastChange: isSame(state, before.state) ? Math.min(before.lastChange, now) : now,
    };
  }

  #schedule(isMore: boolean): void {
    if (isMore) this.#delay = FIRST_DELAY;
    const dueAt = performance.now() + this.#delay;
    // A pending check can only move forward in time, so that new files cannot delay it repeatedly.
    if (this.#timer !== undefined && this.#unsettled.size > 0 && this.#dueAt <= dueAt) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#unsettled.size === 0) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#options.onDue?.([...this.#unsettled.keys()]);
    }, this.#delay).unref();
    this.#dueAt = dueAt;
    this.#delay = Math.min(this.#delay * 2, LAST_DELAY);
  }
}

/** Keeps only the needed properties of {@link Stats}, which otherwise take four times the memory. */
function compact({ size, mtimeMs, dev, ino }: FileState): FileState {
  return { size, mtimeMs, dev, ino };
}

function readState(path: string): Stats | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined; // its directory is gone, or not readable
  }
}

/** Returns the reason why a file is not an image. */
function skipReason(state: Stats): string | undefined {
  if (state.isSymbolicLink()) return 'it is a symbolic link; put the file itself there';
  if (!state.isFile()) return 'it is not a regular file';
  return state.size === 0 ? 'it is empty' : undefined;
}

function isSame(one: FileState, other: FileState | undefined): boolean {
  return (
    one.size === other?.size &&
    one.mtimeMs === other.mtimeMs &&
    one.dev === other.dev &&
    one.ino === other.ino
  );
}
