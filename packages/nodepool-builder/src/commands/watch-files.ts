import { type Stats, type StatsListener, unwatchFile, watchFile } from 'node:fs';

/** Settings of {@link FileWatch}. */
export interface FileWatchOptions {
  /** Called once the files have stood still after a change. */
  readonly onChange: () => void;
  /** Milliseconds between two looks at a file. Default 2000. */
  readonly interval?: number;
}

/**
 * Tells when one of some files changes, appears or goes. It looks at what a path leads to, so that it does not matter
 * how a file is replaced: an editor renames another one onto it, a deployment swaps a symbolic link somewhere on the
 * way to it, another host writes it by NFS.
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
      if (signature(now) === signature(before)) return; // of a file that is not there it is called at once
      clearTimeout(this.#pending);
      // At least one more look, so that nothing is read that is still being written.
      this.#pending = setTimeout(this.#onChange, interval * 1.5);
    };
  }

  /** Watches these files from now on, and no others. */
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
