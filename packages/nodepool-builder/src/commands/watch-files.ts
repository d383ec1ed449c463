import { type Stats, type StatsListener, unwatchFile, watchFile } from 'node:fs';

/**
 * Reports when a file changes, appears or disappears. It polls the paths, so that it notices every kind of replacement:
 * an editor renames a new file onto the old one, a deployment swaps a symbolic link in the path, another host writes the
 * file by NFS.
 */
export class FileWatch {
  readonly #interval: number;
  readonly #listener: StatsListener;
  #files: ReadonlySet<string> = new Set();
  #pending: NodeJS.Timeout | undefined;

  /**
   * @param onChange is called after a change, once the files no longer change
   * @param interval milliseconds between two checks of a file
   */
  constructor(onChange: () => void, interval = 2000) {
    this.#interval = interval;
    this.#listener = (now, before) => {
      if (signature(now) === signature(before)) return; // called at once for a missing file
      clearTimeout(this.#pending);
      // Waits for one more check: the file may still be being written.
      this.#pending = setTimeout(onChange, interval * 1.5);
    };
  }

  /** Replaces the set of watched files. */
  watch(files: Iterable<string>): void {
    const wanted = new Set(files);
    for (const file of this.#files) if (!wanted.has(file)) unwatchFile(file, this.#listener);
    for (const file of wanted) {
      if (!this.#files.has(file)) watchFile(file, { interval: this.#interval }, this.#listener);
    }
    this.#files = wanted;
  }

  close(): void {
    this.watch([]);
    clearTimeout(this.#pending);
  }
}

function signature({ dev, ino, size, mtimeMs, ctimeMs }: Stats): string {
  return [dev, ino, size, mtimeMs, ctimeMs].join();
}
