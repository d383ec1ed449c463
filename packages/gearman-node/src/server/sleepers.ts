import { type FunctionQueue, firstInBoth, type Peer } from './queue-model.ts';

/** The workers that sleep, the one that fell asleep first foremost. For a job only one of them is woken. */
export class Sleepers<Owner> {
  readonly #asleep = new Set<Peer<Owner>>();
  /** The function for which a worker was woken, until it grabs. */
  readonly #woken = new Map<Peer<Owner>, FunctionQueue<Owner>>();
  readonly #notify: (worker: Peer<Owner>) => void;

  /** @param notify tells a worker that there may be a job for it */
  constructor(notify: (worker: Peer<Owner>) => void) {
    this.#notify = notify;
  }

  /** The sleepers; one that is woken meanwhile is left out. */
  [Symbol.iterator](): IterableIterator<Peer<Owner>> {
    return this.#asleep.values();
  }

  has(worker: Peer<Owner>): boolean {
    return this.#asleep.has(worker);
  }

  add(worker: Peer<Owner>): void {
    this.#asleep.add(worker);
  }

  /** The worker sleeps no longer. Returns the function for which it was woken, if it was. */
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

  /** Wakes one worker that offers the function, if there is one. */
  wakeFor(queue: FunctionQueue<Owner>): void {
    const worker = firstInBoth(this.#asleep, queue.workers);
    if (worker) this.wake(worker, queue);
  }
}
