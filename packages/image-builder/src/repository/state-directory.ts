import { readdir, rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { unlessAborted } from '../cancellation.ts';
import { makeStateDirectory } from '../modes.ts';
import { unlessMissing } from '../system-error.ts';
import { Mutex } from './mutex.ts';

/** Milliseconds after which unused state of a failed build is removed: a week. */
const RETENTION = 7 * 24 * 3_600_000;

/** Data that failed builds keep for the next attempt, a directory for each image name. */
export class StateDirectories {
  readonly #parent: string;
  readonly #mutexes = new Map<string, Mutex>();

  constructor(parent: string) {
    this.#parent = parent;
  }

  /** The directory of an image name, for one build. */
  of(imageName: string): StateDirectory {
    const mutex = this.#mutexes.get(imageName) ?? new Mutex();
    this.#mutexes.set(imageName, mutex);
    return new StateDirectory(join(this.#parent, safeName(imageName)), mutex);
  }
}

/** A directory that outlives a failed build and this process. One build uses it at a time. */
export class StateDirectory {
  readonly #path: string;
  readonly #mutex: Mutex;
  readonly #released = Promise.withResolvers<void>();
  #taken: Promise<string> | undefined;

  constructor(path: string, mutex: Mutex) {
    this.#path = path;
    this.#mutex = mutex;
  }

  /**
   * Creates the directory and returns its path, once no other build uses it.
   *
   * @throws the signal's reason
   */
  async take(signal: AbortSignal): Promise<string> {
    this.#taken ??= this.#take(signal);
    return await this.#taken;
  }

  /** Removes the directory if it was taken, because its data is no longer needed. */
  async clear(): Promise<void> {
    if (this.#taken !== undefined) await rm(this.#path, { recursive: true, force: true });
  }

  /** Releases the directory for the next build. */
  release(): void {
    this.#released.resolve();
  }

  async #take(signal: AbortSignal): Promise<string> {
    const granted = Promise.withResolvers<void>();
    void this.#mutex.run(async () => {
      granted.resolve();
      await this.#released.promise;
    });
    await unlessAborted(granted.promise, signal);
    await makeStateDirectory(this.#path);
    const now = new Date();
    await utimes(this.#path, now, now); // a directory in use is not removed
    return this.#path;
  }
}

/** Converts an untrusted text to a file name. */
export function safeName(text: string): string {
  // encodeURIComponent does not change "." and ".."
  return encodeURIComponent(text).replace(/^\./, '%2E');
}

/** Removes directories that no build has used for a week. */
export async function removeUnusedState(parent: string): Promise<void> {
  for (const name of (await unlessMissing(readdir(parent))) ?? []) {
    const path = join(parent, name);
    const { mtimeMs } = await stat(path);
    if (Date.now() - mtimeMs > RETENTION) await rm(path, { recursive: true, force: true });
  }
}
