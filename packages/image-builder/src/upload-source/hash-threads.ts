import { DIGESTS, type Digester, type DigestName } from './digests.ts';
import { HashThread } from './hash-thread.ts';
import { RING_SIZE } from './slot-ring.ts';
import { ThreadedDigester } from './threaded-digester.ts';

/** One for md5, the slowest, and one for the others; each takes 17 MB of memory. */
const MOST_THREADS = 2;

/**
 * Threads that compute the digests of all files that are read concurrently. They start with the first file and end with
 * the last one. One thread computes a digest of a file from beginning to end.
 */
export class HashThreads {
  /** Reused: the garbage collector ignores the size of shared memory and would let it accumulate. */
  readonly #memories: SharedArrayBuffer[] = [];
  #threads: HashThread[] = [];
  #digesters = 0;
  #hashes = 0;

  /** Creates the digester of one file. */
  digester(names: readonly DigestName[]): Digester {
    this.#digesters += 1;
    const memory = this.#memories.pop() ?? new SharedArrayBuffer(RING_SIZE);
    // The most expensive digests are assigned first.
    const hashes = names
      .toSorted((one, other) => DIGESTS[other].cost - DIGESTS[one].cost)
      .map((name) => {
        const thread = this.#leastBusy();
        thread.load += DIGESTS[name].cost;
        this.#hashes += 1;
        return { name, thread, hash: this.#hashes };
      });
    return new ThreadedDigester(hashes, memory, async () => {
      for (const { name, thread } of hashes) thread.load -= DIGESTS[name].cost;
      this.#memories.push(memory);
      this.#digesters -= 1;
      if (this.#digesters > 0) return;
      await Promise.all(this.#threads.splice(0).map((thread) => thread.stop()));
    });
  }

  #leastBusy(): HashThread {
    this.#threads = this.#threads.filter(({ dead }) => !dead);
    const [idlest] = this.#threads.toSorted((one, other) => one.load - other.load);
    if (idlest !== undefined && (idlest.load === 0 || this.#threads.length === MOST_THREADS)) return idlest;
    const thread = new HashThread();
    this.#threads.push(thread);
    return thread;
  }
}
