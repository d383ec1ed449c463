import { type Stats, type StatsListener, unwatchFile, watchFile } from 'node:fs';

/** Settings of {@link FileWatch}. */
export interface FileWatchOptions {
  /** Called after a change, once the files no longer change. */
  readonly onChange: () => void;
  /** Milliseconds between two checks of a file. Default 2000. */
  readonly interval?: number;
}

/**
 * Reports when a file changes, appears or disappears. It polls the paths, so that it notices every kind of replacement:
 * an editor renames a new file onto the old one, a deployment swaps a symbolic link in the path, another host writes the
 * file by NFS.
 */
export class FileWatch implements Disposable {
  readonly #onChange: () => void;
  readonly #interval: number;
  readonly #listener: StatsListener;
  #files: ReadonlySet<string> = new Set();
  #pending: NodeJS.Timeout | undefined;

  constructor({ onChange, interval = 2000 }: FileWatchOptions) {
    this.#onChange = onChange;
    this.#interval = interval;
    this.#listener = (now, before) => {
      if (signature(now) === signature(before)) return; // called at once for a missing file
      clearTimeout(this.#pending);
      // Waits for one more check: the file may still be being written.
      this.#pending = setTimeout(this.#onChange, interval * 1.5);
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

  [Symbol.dispose](): void {
    this.close();
  }
}

function signature({ dev, ino, size, mtimeMs, ctimeMs }: Stats): string {
  return [dev, ino, size, mtimeMs, ctimeMs].join();
}
