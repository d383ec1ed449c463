import type { Stats } from 'node:fs';
import { lstat, realpath, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { fileKey, findWriters, type Writers } from './writers.ts';

/** The state of a file at one moment. */
export interface FileState {
  readonly size: number;
  readonly mtimeMs: number;
  readonly dev: number;
  readonly ino: number;
}

/**
 * Why a file is looked at: it was `present` at the start, something was `moved` (or created, or removed) under
 * its name, its content was `changed`, it was `found` although nothing had told of it, or it is looked at
 * `again` because it was not settled.
 */
export type Occasion = 'present' | 'moved' | 'changed' | 'found' | 'again';

/** Milliseconds without a change after which a file counts as settled if its writer might be invisible. */
export const QUIET_PERIOD = 2_000;

/** Milliseconds between two looks at a file that is not settled; they double up to the second. */
const FIRST_DELAY = 25;
const LAST_DELAY = 1_000;

/** Whether a file that no visible process writes has to be quiet for a while before it counts as settled. */
const NEEDS_QUIET: Readonly<
  Record<Exclude<Occasion, 'again'>, (allVisible: boolean, size: number) => boolean>
> = {
  present: (allVisible) => !allVisible,
  // Moved here, it was written elsewhere, and probably before; created here, it is empty.
  moved: (allVisible, size) => !allVisible && size === 0,
  changed: (allVisible) => !allVisible,
  // No event came: another host writes it, over a network file system.
  found: () => true,
};

interface Unsettled {
  readonly occasion: Exclude<Occasion, 'again'>;
  readonly state: FileState;
  /** When the file changed last, as far as seen from here. */
  readonly lastChange: number;
  readonly delay: number;
  readonly dueAt: number;
}

/**
 * Knows which files of a directory are whole: those that no process holds open for writing, or, where the
 * processes of other users and hosts cannot be seen, that did not change for a while.
 */
export class SettledFiles {
  readonly #directory: string;
  readonly #onDue: (names: readonly string[]) => void;
  readonly #findWriters: (paths: readonly string[]) => Promise<Writers>;
  readonly #settled = new Map<string, FileState>();
  readonly #unsettled = new Map<string, Unsettled>();
  #timer: NodeJS.Timeout | undefined;

  /**
   * @param onDue told which files have to be looked at again.
   * @param find another one than {@link findWriters}, for tests.
   */
  constructor(
    directory: string,
    onDue: (names: readonly string[]) => void,
    find: (paths: readonly string[]) => Promise<Writers> = findWriters,
  ) {
    this.#directory = directory;
    this.#onDue = onDue;
    this.#findWriters = find;
  }

  /** The state of a file that is settled. */
  get(name: string): FileState | undefined {
    return this.#settled.get(name);
  }

  /** All files that are known, settled or not. */
  names(): string[] {
    return [...this.#settled.keys(), ...this.#unsettled.keys()];
  }

  /** Says that a file is whole: this program itself put it there. */
  add(name: string, { size, mtimeMs, dev, ino }: FileState): void {
    this.#settled.set(name, { size, mtimeMs, dev, ino });
    this.#unsettled.delete(name);
  }

  /** Says that a file is gone; returns whether it was settled. */
  delete(name: string): boolean {
    this.#unsettled.delete(name);
    return this.#settled.delete(name);
  }

  /** Looks at files; returns the names of those that are settled now, or no longer, or with another content. */
  async look(occasions: ReadonlyMap<string, Occasion>): Promise<string[]> {
    const changes: string[] = [];
    const candidates = new Map<string, Stats>();
    const paths: string[] = [];
    await each(occasions, async ([name, occasion]) => {
      const waiting = this.#unsettled.get(name);
      if (waiting !== undefined && occasion === 'changed') {
        this.#unsettled.set(name, { ...waiting, occasion });
        return; // Its timer looks. A file that is being written changes all the time.
      }
      const found = await findFile(join(this.#directory, name));
      if (found === undefined) {
        if (this.delete(name)) changes.push(name);
      } else if (!isSame(found.state, this.#settled.get(name))) {
        candidates.set(name, found.state);
        paths.push(found.path);
      }
    });
    if (candidates.size > 0) {
      const writers = await this.#findWriters(paths);
      await each(candidates, async ([name, before]) => {
        // Once more: a writer may have written its last while the processes were looked through.
        const now = (await findFile(join(this.#directory, name)))?.state;
        const unsettled = this.#unsettle(name, before, occasions.get(name));
        const busy = !isSame(before, now) || writers.files.has(fileKey(before));
        if (!busy && isQuiet(unsettled, writers.complete)) {
          this.add(name, before);
          changes.push(name);
        } else {
          if (this.#settled.delete(name)) changes.push(name);
          this.#unsettled.set(name, unsettled);
        }
      });
    }
    this.#schedule();
    return changes;
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#unsettled.clear();
  }

  #unsettle(name: string, state: FileState, occasion: Occasion = 'again'): Unsettled {
    const now = Date.now();
    const before = this.#unsettled.get(name);
    const delay = before === undefined ? FIRST_DELAY : Math.min(before.delay * 2, LAST_DELAY);
    // A time of modification that lies ahead comes from another clock.
    const changedAt = before === undefined ? Math.min(state.mtimeMs, now) : now;
    return {
      occasion: occasion === 'again' || occasion === 'found' ? (before?.occasion ?? 'found') : occasion,
      state,
      lastChange: before !== undefined && isSame(state, before.state) ? before.lastChange : changedAt,
      delay,
      dueAt: now + delay,
    };
  }

  #schedule(): void {
    clearTimeout(this.#timer);
    if (this.#unsettled.size === 0) return;
    const next = Math.min(...Array.from(this.#unsettled.values(), ({ dueAt }) => dueAt));
    const delay = Math.max(0, next - Date.now());
    // What is due is counted from `next`: a timer may fire a little before the clock says so.
    this.#timer = setTimeout(() => {
      this.#onDue([...this.#unsettled].filter(([, { dueAt }]) => dueAt <= next).map(([name]) => name));
    }, delay);
    this.#timer.unref();
  }
}

async function each<T>(items: Iterable<T>, work: (item: T) => Promise<void>): Promise<void> {
  await Promise.all(Array.from(items, work));
}

interface FoundFile {
  readonly path: string;
  readonly state: Stats;
}

/** A regular file, or the one that a symbolic link leads to. Only links cost more than one system call. */
async function findFile(path: string): Promise<FoundFile | undefined> {
  try {
    const state = await lstat(path);
    if (state.isFile()) return { path, state };
    if (!state.isSymbolicLink()) return undefined;
    const target = await realpath(path);
    const targetState = await stat(target);
    return targetState.isFile() ? { path: target, state: targetState } : undefined;
  } catch {
    return undefined;
  }
}

function isSame(one: FileState, other: FileState | undefined): boolean {
  return (
    one.size === other?.size &&
    one.mtimeMs === other.mtimeMs &&
    one.dev === other.dev &&
    one.ino === other.ino
  );
}

function isQuiet({ occasion, state, lastChange }: Unsettled, allVisible: boolean): boolean {
  return !NEEDS_QUIET[occasion](allVisible, state.size) || Date.now() - lastChange >= QUIET_PERIOD;
}
