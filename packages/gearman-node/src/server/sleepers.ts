import { type FunctionQueue, firstInBoth, type Peer } from './queue-model.ts';

/** The sleeping workers, longest asleep first. Each job wakes only one of them. */
export class Sleepers {
  readonly #asleep = new Set<Peer>();
  /** The functions for which workers were woken, until they grab. */
  readonly #woken = new Map<Peer, FunctionQueue>();
  readonly #notify: (worker: Peer) => void;

  /** @param notify notifies a worker of a possible job */
  constructor(notify: (worker: Peer) => void) {
    this.#notify = notify;
  }

  /** Iterates over the sleepers; skips those that are woken during the iteration. */
  [Symbol.iterator](): IterableIterator<Peer> {
    return this.#asleep.values();
  }

  has(worker: Peer): boolean {
    return this.#asleep.has(worker);
  }

  add(worker: Peer): void {
    this.#asleep.add(worker);
  }

  /** Removes a worker. Returns the function for which it was woken, if any. */
  delete(worker: Peer): FunctionQueue | undefined {
    this.#asleep.delete(worker);
    const queue = this.#woken.get(worker);
    this.#woken.delete(worker);
    return queue;
  }

  wake(worker: Peer, queue: FunctionQueue): void {
    this.#asleep.delete(worker);
    this.#woken.set(worker, queue);
    this.#notify(worker);
  }

  /** Wakes one worker of the function, if one sleeps. */
  wakeFor(queue: FunctionQueue): void {
    const worker = firstInBoth(this.#asleep, queue.workers);
    if (worker) this.wake(worker, queue);
  }
}
