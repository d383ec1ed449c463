import type { SubmittedJob } from './submitted-job.ts';

/** The part of a job that its connection uses. */
export type Subscriber = Pick<
  SubmittedJob,
  'function' | 'push' | 'endEvents' | 'complete' | 'throwException' | 'fail' | 'reject' | 'lose'
>;

/** Takes the turns of every job that its caller has abandoned, so that these jobs need no memory. */
export const ABANDONED: Subscriber = {
  function: '',
  push() {},
  endEvents() {},
  complete() {},
  throwException() {},
  fail() {},
  reject() {},
  lose() {},
};

/**
 * The jobs that share a handle because their unique key is the same. A server sends each packet once for each of them,
 * without naming the job, so the jobs take turns in the order of submission.
 */
export class JobSubscribers {
  readonly #jobs: Subscriber[] = [];
  #turn = 0;

  get size(): number {
    return this.#jobs.length;
  }

  add(job: Subscriber): void {
    this.#jobs.push(job);
    this.#turn = 0;
  }

  /** Forgets a job whose packets still arrive. */
  abandon(job: Subscriber): void {
    const index = this.#jobs.indexOf(job);
    if (index >= 0) this.#jobs[index] = ABANDONED;
  }

  /** Returns the job that the next packet belongs to. */
  next(): Subscriber {
    const job = this.#jobs[this.#turn % this.#jobs.length] as Subscriber;
    this.#turn += 1;
    return job;
  }

  /** Removes and returns the job that the next packet, its final one, belongs to. */
  takeNext(): Subscriber {
    // Most handles have one job.
    const [job] =
      this.#jobs.length === 1 ? [this.#jobs.pop()] : this.#jobs.splice(this.#turn % this.#jobs.length, 1);
    return job as Subscriber;
  }

  [Symbol.iterator](): IterableIterator<Subscriber> {
    return this.#jobs.values();
  }
}
