import type { SubmittedJob } from './submitted-job.ts';

/**
 * The jobs that share a handle, because their unique key is the same. Servers send each packet once for each of them
 * and do not say for whom: they take turns, in the order in which the jobs were submitted.
 */
export class JobSubscribers {
  readonly #jobs: SubmittedJob[] = [];
  #turn = 0;

  get size(): number {
    return this.#jobs.length;
  }

  add(job: SubmittedJob): void {
    this.#jobs.push(job);
    this.#turn = 0;
  }

  /** The job that the next packet is for. */
  next(): SubmittedJob {
    const job = this.#jobs[this.#turn % this.#jobs.length] as SubmittedJob;
    this.#turn += 1;
    return job;
  }

  /** The job that the next packet, its last, is for. */
  takeNext(): SubmittedJob {
    const [job] = this.#jobs.splice(this.#turn % this.#jobs.length, 1);
    return job as SubmittedJob;
  }

  [Symbol.iterator](): IterableIterator<SubmittedJob> {
    return this.#jobs.values();
  }
}
