import { type Stats, type StatsListener, unwatchFile, watchFile } from 'node:fs';
import { stat } from 'node:fs/promises';

/**
 * Reports when a file changes, appears or disappears. It polls the paths, so that it notices every kind of replacement:
 * an editor renames a new file onto the old one, a deployment swaps a symbolic link in the path, another host writes
 * the file by NFS.
 */
export class FileWatch {
  readonly #interval: number;
  readonly #listener: StatsListener;
  #files: ReadonlySet<string> = new Set();
  /** States of the files when they were last reported. */
  readonly #reported = new Map<string, string>();
  #pending: NodeJS.Timeout | undefined;

  /**
   * @param onChange is called after a change, once the files no longer change
   * @param interval milliseconds between two checks of a file
   */
  constructor(onChange: () => void, interval = 2000) {
    this.#interval = interval;
    this.#listener = (now, before) => {
      if (signature(now) === signature(before)) return; // also called at once for a missing file
      clearTimeout(this.#pending);
      // Waits for one more check, because the file may still be being written.
      this.#pending = setTimeout(() => {
        for (const file of this.#files) void this.#remember(file);
        onChange();
      }, interval * 1.5);
    };
  }

  /** Replaces the set of watched files. */
  watch(files: Iterable<string>): void {
    const wanted = new Set(files);
    for (const file of this.#files) if (!wanted.has(file)) unwatchFile(file, this.#listener);
    for (const file of wanted) {
      if (this.#files.has(file)) continue;
      watchFile(file, { interval: this.#interval }, this.#listener);
      void this.#remember(file);
    }
    this.#files = wanted;
  }

  /** Returns whether a file has changed since the last report, which the next check would report later. */
  async hasChanged(): Promise<boolean> {
    for (const file of this.#files) {
      const before = this.#reported.get(file);
      if (before !== undefined && before !== (await stateOf(file))) return true;
    }
    return false;
  }

  async #remember(file: string): Promise<void> {
    this.#reported.set(file, await stateOf(file));
  }

  close(): void {
    this.watch([]);
    clearTimeout(this.#pending);
  }
}

async function stateOf(file: string): Promise<string> {
  return await stat(file).then(signature, () => 'missing');
}

function signature({ dev, ino, size, mtimeMs, ctimeMs }: Stats): string {
  return [dev, ino, size, mtimeMs, ctimeMs].join();
}
