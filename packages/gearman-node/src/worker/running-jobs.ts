import type { GearmanError } from '../errors.ts';
import type { AssignedJob } from './worker-job.ts';

/** The jobs that run in a worker, over all its connections, those that were lost included. */
export class RunningJobs {
  readonly #jobs = new Set<AssignedJob>();
  #stopReason: GearmanError | undefined;

  add(job: AssignedJob): void {
    this.#jobs.add(job);
    if (this.#stopReason) job.stop(this.#stopReason);
  }

  delete(job: AssignedJob): void {
    this.#jobs.delete(job);
  }

  /** Aborts the signal of every job, and of each that is still to come. */
  stopAll(reason: GearmanError): void {
    this.#stopReason = reason;
    for (const job of this.#jobs) job.stop(reason);
  }
}
