import type { SubmittedJob } from './submitted-job.ts';

/**
 * The jobs that share a handle because their unique key is the same. A server sends each packet once for each of them,
 * without naming it: the jobs take turns in the order of submission.
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

  /** Returns the job of the next packet. */
  next(): SubmittedJob {
    const job = this.#jobs[this.#turn % this.#jobs.length] as SubmittedJob;
    this.#turn += 1;
    return job;
  }

  /** Removes and returns the job of the next packet, which is final. */
  takeNext(): SubmittedJob {
    // Most jobs are alone.
    const [job] =
      this.#jobs.length === 1 ? [this.#jobs.pop()] : this.#jobs.splice(this.#turn % this.#jobs.length, 1);
    return job as SubmittedJob;
  }

  [Symbol.iterator](): IterableIterator<SubmittedJob> {
    return this.#jobs.values();
  }
}
