import { rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { unlessAborted } from '../cancellation.ts';
import { removeTree } from '../cleanup/privileged.ts';
import { utf8Names } from '../directory-entries.ts';
import { KeyedQueue } from '../keyed-queue.ts';
import { makeStateDirectory } from '../modes.ts';
import type { Logger } from '../types.ts';

/** Milliseconds after which unused state of a failed build is removed: a week. */
export const STATE_RETENTION: number = 7 * 24 * 3_600_000;

/** A directory that outlives a failed build and this process. One build uses it at a time. */
export interface StateDirectory {
  /**
   * Creates the directory and returns its path, once no other build uses it.
   *
   * @throws the signal's reason
   */
  take(signal: AbortSignal): Promise<string>;
  /** Removes the directory if it was taken, because its data is no longer needed. */
  clear(): Promise<void>;
  /** Releases the directory for the next build. */
  release(): void;
}

/** Data that failed builds keep for the next attempt, in a directory for each image name. */
export class StateDirectories {
  readonly #parent: string;
  readonly #turns = new KeyedQueue();

  constructor(parent: string) {
    this.#parent = parent;
  }

  /** Returns the directory of an image name, for one build. */
  of(imageName: string): StateDirectory {
    const path = join(this.#parent, safeName(imageName));
    const released = Promise.withResolvers<void>();
    let taken: Promise<string> | undefined;
    const take = async (signal: AbortSignal): Promise<string> => {
      const granted = Promise.withResolvers<void>();
      void this.#turns.run(imageName, {}, async () => {
        granted.resolve();
        await released.promise;
      });
      await unlessAborted(granted.promise, signal);
      await makeStateDirectory(path);
      const now = new Date();
      await utimes(path, now, now); // a directory in use is not removed
      return path;
    };
    return {
      take: (signal) => (taken ??= take(signal)),
      clear: async () => {
        if (taken !== undefined) await rm(path, { recursive: true, force: true });
      },
      release: released.resolve,
    };
  }
}

/** Removes the directories in `parent` that no build has used for this number of milliseconds. */
export async function removeUnused(parent: string, retention: number, logger?: Logger): Promise<void> {
  for (const name of await utf8Names(parent, logger)) {
    const path = join(parent, name);
    const { mtimeMs } = await stat(path);
    if (Date.now() - mtimeMs > retention) await removeTree(path);
  }
}

/** Converts an untrusted text to a file name. */
export function safeName(text: string): string {
  // encodeURIComponent does not change "." and ".."
  return encodeURIComponent(text).replace(/^\./, '%2E');
}
