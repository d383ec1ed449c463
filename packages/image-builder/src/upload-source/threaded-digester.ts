import type { Digester, DigestName, Digests, Range } from './digests.ts';
import type { HashThread } from './hash-thread.ts';

/** A hash in a thread. */
interface ThreadHash {
  readonly name: DigestName;
  readonly thread: HashThread;
  /** Number, unique in the thread. */
  readonly hash: number;
}

/** Computes digests in other threads, all digests of a range in parallel. */
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

  /** Never rejected: the error of a dead thread is reported with the digest. */
  async #each(ask: (hash: ThreadHash) => Promise<unknown>): Promise<void> {
    await Promise.allSettled(this.#hashes.map(ask));
  }
}
