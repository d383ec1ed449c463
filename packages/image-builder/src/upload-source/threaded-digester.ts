import type { Digester, DigestName, Digests, Range } from './digests.ts';
import type { HashThread } from './hash-thread.ts';

/** A hash in one of the threads. */
interface ThreadHash {
  readonly name: DigestName;
  readonly thread: HashThread;
  /** Its number, unique in its thread. */
  readonly hash: number;
}

/** Digests in other threads, all digests of a range at the same time. */
export class ThreadedDigester implements Digester {
  readonly memory: SharedArrayBuffer;
  readonly #hashes: readonly ThreadHash[];
  readonly #release: () => Promise<void>;

  constructor(hashes: readonly ThreadHash[], memory: SharedArrayBuffer, release: () => Promise<void>) {
    this.memory = memory;
    this.#hashes = hashes;
    this.#release = release;
    void this.#each(({ thread, hash, name }) => thread.ask({ do: 'begin', hash, name, memory }));
  }

  async update(bytes: Range): Promise<void> {
    await this.#each(({ thread, hash }) => thread.ask({ do: 'update', hash, ...bytes }));
  }

  async digest(): Promise<Digests> {
    const digests = this.#hashes.map(async ({ name, thread, hash }) => [
      name,
      await thread.ask({ do: 'digest', hash }),
    ]);
    return Object.fromEntries(await Promise.all(digests)) as Digests;
  }

  async close(): Promise<void> {
    await this.#each(({ thread, hash }) => thread.ask({ do: 'drop', hash }));
    await this.#release();
  }

  /** Does not fail: a thread that has died says so when it is asked for the digest. */
  async #each(ask: (hash: ThreadHash) => Promise<unknown>): Promise<void> {
    await Promise.allSettled(this.#hashes.map(ask));
  }
}
