import { type JobPriority, PRIORITIES } from '../submit-packets.ts';
import { type FunctionQueue, firstInBoth, type Peer, type ServerJob } from './queue-model.ts';

/** The waiting jobs, the most urgent first; functions with jobs of the same priority take turns. */
export class WaitingJobs {
  /** Functions with waiting jobs, the least recently served first. */
  readonly #functions: Readonly<Record<JobPriority, Set<FunctionQueue>>> = {
    high: new Set(),
    normal: new Set(),
    low: new Set(),
  };

  add(job: ServerJob): void {
    job.queue.addWaiting(job);
    this.#functions[job.priority].add(job.queue);
  }

  delete(job: ServerJob): void {
    const waiting = job.queue.waiting[job.priority];
    waiting.delete(job);
    if (waiting.size === 0) this.#functions[job.priority].delete(job.queue);
  }

  /** The next job for a worker. */
  nextFor(worker: Peer): ServerJob | undefined {
    for (const priority of PRIORITIES) {
      const functions = this.#functions[priority];
      const queue = functions.size > 0 ? firstInBoth(functions, worker.functions) : undefined;
      if (queue) return queue.waiting[priority].values().next().value;
    }
    return undefined;
  }

  /** Removes the next job for a worker and returns it. */
  takeFor(worker: Peer): ServerJob | undefined {
    const job = this.nextFor(worker);
    if (!job) return undefined;
    this.delete(job);
    moveToEnd(this.#functions[job.priority], job.queue);
    moveToEnd(worker.functions, job.queue);
    return job;
  }
}

function moveToEnd<T>(set: Set<T>, member: T): void {
  if (set.size > 1 && set.delete(member)) set.add(member);
}
