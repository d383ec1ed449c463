import type { GearmanError } from '../errors.ts';
import type { AssignedJob, JobConnection } from './worker-job.ts';

/** The running jobs of a worker, over all its connections, including lost ones. */
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

  /** The jobs that one connection assigned. */
  of(connection: JobConnection): AssignedJob[] {
    return [...this.#jobs].filter((job) => job.connection === connection);
  }

  /** Aborts the signals of all current and later jobs. */
  stopAll(reason: GearmanError): void {
    this.#stopReason = reason;
    for (const job of this.#jobs) job.stop(reason);
  }
}
