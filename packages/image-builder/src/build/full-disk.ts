import { statfs } from 'node:fs/promises';
import { formatBytes } from '../format-bytes.ts';

/** Free bytes below which programs fail without naming a full disk; on small file systems, below this share. */
const FULL = 64 * 2 ** 20;
const FULL_SHARE = 1 / 100;

/** Milliseconds between two looks. */
const INTERVAL = 1000;

/** Milliseconds for which a full disk counts: a program that fails may remove its files first. */
const MEMORY = 60_000;

/** Watches the file systems that a command writes to: many programs do not say that one is full. */
export class FullDiskWatch {
  readonly #directories: ReadonlySet<string>;
  #nextAt = 0;
  #last: { readonly at: number; readonly text: string } | undefined;

  constructor(directories: readonly string[]) {
    this.#directories = new Set(directories);
  }

  /** Looks at the free space, at most once a second. Call it for each line of output. */
  look(): void {
    if (performance.now() >= this.#nextAt) void this.find();
  }

  /** Describes the file system that is full, or was in the last minute: `"/srv" has 5.0 MiB of 5.8 GiB left`. */
  async find(): Promise<string | undefined> {
    this.#nextAt = performance.now() + INTERVAL;
    for (const directory of this.#directories) {
      const found = await statfs(directory).catch(() => undefined); // the command may remove it
      if (found === undefined) continue;
      const [free, size] = [found.bavail * found.bsize, found.blocks * found.bsize];
      if (free >= Math.min(FULL, size * FULL_SHARE)) continue;
      const text = `"${directory}" has ${formatBytes(free)} of ${formatBytes(size)} left`;
      this.#last = { at: performance.now(), text };
    }
    return this.#last !== undefined && performance.now() - this.#last.at <= MEMORY
      ? this.#last.text
      : undefined;
  }
}
