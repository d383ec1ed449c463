import { readdir, rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { makeStateDirectory } from '../modes.ts';
import { unlessMissing } from '../system-error.ts';
import { unlessAborted } from '../unless-aborted.ts';
import { Mutex } from './mutex.ts';

/** Milliseconds after which nobody is expected to go on with what a build left: a week. */
const ABANDONED = 7 * 24 * 3_600_000;

/** What builds keep for the case that they are asked for again, a directory for each image name. */
export class StateDirectories {
  readonly #parent: string;
  readonly #mutexes = new Map<string, Mutex>();

  constructor(parent: string) {
    this.#parent = parent;
  }

  /** That of one image name, for one build of it. */
  of(imageName: string): StateDirectory {
    const mutex = this.#mutexes.get(imageName) ?? new Mutex();
    this.#mutexes.set(imageName, mutex);
    return new StateDirectory(join(this.#parent, safeName(imageName)), mutex);
  }
}

/** A directory that outlives a build that fails, and this process. One build has it at a time. */
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
   * Its path, once no other build has it. It is made.
   *
   * @throws the signal's reason
   */
  async take(signal: AbortSignal): Promise<string> {
    this.#taken ??= this.#take(signal);
    return await this.#taken;
  }

  /** Removes it, if it was taken: nobody will go on with what is there. */
  async clear(): Promise<void> {
    if (this.#taken !== undefined) await rm(this.#path, { recursive: true, force: true });
  }

  /** Lets the next build have it. */
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
    await utimes(this.#path, now, now); // what is in use is not abandoned
    return this.#path;
  }
}

/** A text that comes from elsewhere as the name of a file. */
export function safeName(text: string): string {
  // "." and ".." are what encoding leaves of a path
  return encodeURIComponent(text).replace(/^\./, '%2E');
}

/** Removes what no build has gone on with for a week. */
export async function clearAbandoned(parent: string): Promise<void> {
  for (const name of (await unlessMissing(readdir(parent))) ?? []) {
    const path = join(parent, name);
    const { mtimeMs } = await stat(path);
    if (Date.now() - mtimeMs > ABANDONED) await rm(path, { recursive: true, force: true });
  }
}
