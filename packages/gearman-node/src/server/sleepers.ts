import { type FunctionQueue, firstInBoth, type Peer } from './queue-model.ts';

/** The sleeping workers, longest asleep first. Each job wakes only one of them. */
export class Sleepers<Owner> {
  readonly #asleep = new Set<Peer<Owner>>();
  /** The functions for which workers were woken, until they grab. */
  readonly #woken = new Map<Peer<Owner>, FunctionQueue<Owner>>();
  readonly #notify: (worker: Peer<Owner>) => void;

  /** @param notify notifies a worker of a possible job */
  constructor(notify: (worker: Peer<Owner>) => void) {
    this.#notify = notify;
  }

  /** Iterates over the sleepers; skips those that are woken during the iteration. */
  [Symbol.iterator](): IterableIterator<Peer<Owner>> {
    return this.#asleep.values();
  }

  has(worker: Peer<Owner>): boolean {
    return this.#asleep.has(worker);
  }

  add(worker: Peer<Owner>): void {
    this.#asleep.add(worker);
  }

  /** Removes a worker. Returns the function for which it was woken, if any. */
  delete(worker: Peer<Owner>): FunctionQueue<Owner> | undefined {
    this.#asleep.delete(worker);
    const queue = this.#woken.get(worker);
    this.#woken.delete(worker);
    return queue;
  }

  wake(worker: Peer<Owner>, queue: FunctionQueue<Owner>): void {
    this.#asleep.delete(worker);
    this.#woken.set(worker, queue);
    this.#notify(worker);
  }

  /** Wakes one worker of the function, if one sleeps. */
  wakeFor(queue: FunctionQueue<Owner>): void {
    const worker = firstInBoth(this.#asleep, queue.workers);
    if (worker) this.wake(worker, queue);
  }
}
