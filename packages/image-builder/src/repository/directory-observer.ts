import { type FSWatcher, watch } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { imageIdFault } from '../image-id.ts';
import type { Logger } from '../types.ts';
import { parseImageFileName } from './image-file-name.ts';
import type { Mutex } from './mutex.ts';
import { type Occasion, SettledFiles } from './settled-files.ts';
import { fileKey } from './writers.ts';

/** Milliseconds between two full scans, which find changes without an inotify event (NFS, queue overflow). */
const RESCAN_INTERVAL = 60_000;

/** The same while the directory cannot be watched or does not exist. */
const UNWATCHED_INTERVAL = 1_000;

/** Settings of a {@link DirectoryObserver}. */
export interface DirectoryObserverOptions {
  readonly directory: string;
  /** Held during each scan. */
  readonly mutex: Mutex;
  /** Called under the mutex with the names of image files that appeared, disappeared or changed. */
  readonly onChanges: (names: readonly string[]) => Promise<void>;
  /** Called when a missing directory is back, or the directory has been replaced. */
  readonly onReturn: () => Promise<void>;
  readonly logger: Logger | undefined;
}

/** Observes the image files of a directory. */
export class DirectoryObserver {
  readonly files: SettledFiles;
  readonly #options: DirectoryObserverOptions;
  readonly #refused = new Set<string>();
  #pending = new Map<string, Occasion>();
  #watcher: FSWatcher | undefined;
  #identity: string | undefined;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(options: DirectoryObserverOptions) {
    this.#options = options;
    this.files = new SettledFiles(options.directory, {
      onDue: (names) => {
        for (const name of names) this.#note(name, 'again');
      },
      onRefused: (name, reason) => this.#refuse(name, reason),
    });
  }

  /** Begins to watch, and reports all present files. */
  async start(): Promise<void> {
    this.#identity = fileKey(await stat(this.#options.directory));
    this.#watch();
    await this.#options.mutex.run(() => this.#scan('present'));
    this.#scheduleRescan();
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#watcher?.close();
    this.files.close();
  }

  #watch(): void {
    const { directory, logger } = this.#options;
    const failed = (error: unknown): void => {
      logger?.warn(`"${directory}" cannot be watched; scanning it every second: ${String(error)}`);
      this.#watcher?.close();
      this.#watcher = undefined;
    };
    try {
      this.#watcher = watch(directory, (event, name) => this.#onEvent(event, name));
      this.#watcher.on('error', failed);
    } catch (error) {
      failed(error);
    }
  }

  #onEvent(event: string, name: string | null): void {
    if (name === null || name === basename(this.#options.directory)) {
      void this.#rescan(); // the directory itself changed
    } else if (this.#isImageFile(name)) {
      this.#note(name, event === 'change' ? 'changed' : 'moved');
    }
  }

  /** Schedules a check of a file, together with all others that change until the mutex is free. */
  #note(name: string, occasion: Occasion): void {
    if (this.#closed) return;
    const first = this.#pending.size === 0;
    this.#pending.set(name, this.#pending.get(name) === 'changed' ? 'changed' : occasion);
    if (first)
      this.#options.mutex.run(() => this.#lookAtPending()).catch((error: unknown) => this.#report(error));
  }

  async #lookAtPending(): Promise<void> {
    const occasions = this.#pending;
    this.#pending = new Map();
    const changes = this.#closed ? [] : await this.files.look(occasions);
    if (changes.length > 0) await this.#options.onChanges(changes);
  }

  async #scan(occasion: Occasion): Promise<void> {
    const names = (await readdir(this.#options.directory)).filter((name) => this.#isImageFile(name));
    const changes = await this.files.look(
      new Map([...names, ...this.files.names()].map((name) => [name, occasion])),
    );
    if (changes.length > 0) await this.#options.onChanges(changes);
  }

  /** Detects that the directory disappeared, and watches it again when it is back. */
  async #checkDirectory(): Promise<void> {
    const { directory, logger, onChanges, onReturn } = this.#options;
    const identity = await stat(directory).then(fileKey, () => undefined);
    if (identity !== this.#identity) {
      const before = this.#identity;
      this.#identity = undefined;
      this.#watcher?.close();
      this.#watcher = undefined;
      if (before !== undefined) {
        logger?.error(`"${directory}" has disappeared with all its images; restore it`);
        await onChanges(this.files.names().filter((name) => this.files.delete(name)));
      }
      if (identity === undefined) return;
      await onReturn();
      this.#identity = identity;
      logger?.info(`"${directory}" is back`);
    }
    if (this.#watcher === undefined) this.#watch();
  }

  #scheduleRescan(): void {
    clearTimeout(this.#timer);
    if (this.#closed) return;
    const interval = this.#watcher === undefined ? UNWATCHED_INTERVAL : RESCAN_INTERVAL;
    this.#timer = setTimeout(() => void this.#rescan(), interval).unref();
  }

  /** Scans the whole directory, and schedules the next scan. */
  async #rescan(): Promise<void> {
    try {
      await this.#options.mutex.run(async () => {
        if (this.#closed) return;
        await this.#checkDirectory();
        if (this.#identity !== undefined) await this.#scan('found');
      });
    } catch (error) {
      this.#report(error);
    }
    this.#scheduleRescan();
  }

  #report(error: unknown): void {
    this.#options.logger?.error(`"${this.#options.directory}" could not be read: ${String(error)}`);
  }

  /** Whether a file may be an image. Logs once why a file with such a name is not an image. */
  #isImageFile(name: string): boolean {
    const parsed = parseImageFileName(name);
    if (parsed === undefined) return false;
    const fault = imageIdFault(parsed.imageId);
    if (fault !== undefined) this.#refuse(name, `its id ${fault}; rename it`);
    return fault === undefined;
  }

  #refuse(name: string, reason: string): void {
    if (this.#refused.has(name)) return;
    this.#refused.add(name);
    this.#options.logger?.warn(`${JSON.stringify(name)} is not offered as an image: ${reason}`);
  }
}
