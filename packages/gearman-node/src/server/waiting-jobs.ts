import { type JobPriority, PRIORITIES } from '../submit-packets.ts';
import { type FunctionQueue, firstInBoth, type Peer, type QueuedJob } from './queue-model.ts';

/** The jobs that wait for a worker. The most urgent goes first; among functions of one priority they take turns. */
export class WaitingJobs<Owner> {
  /** Functions with waiting jobs, the one that was served longest ago first. */
  readonly #functions: Readonly<Record<JobPriority, Set<FunctionQueue<Owner>>>> = {
    high: new Set(),
    normal: new Set(),
    low: new Set(),
  };

  add(job: QueuedJob<Owner>): void {
    job.queue.waiting[job.priority].add(job);
    this.#functions[job.priority].add(job.queue);
  }

  delete(job: QueuedJob<Owner>): void {
    const waiting = job.queue.waiting[job.priority];
    waiting.delete(job);
    if (waiting.size === 0) this.#functions[job.priority].delete(job.queue);
  }

  /** The next job that the worker can do. */
  nextFor(worker: Peer<Owner>): QueuedJob<Owner> | undefined {
    for (const priority of PRIORITIES) {
      const queue = firstInBoth(this.#functions[priority], worker.functions);
      if (queue) return queue.waiting[priority].values().next().value;
    }
    return undefined;
  }

  /** Takes out the next job that the worker can do. */
  takeFor(worker: Peer<Owner>): QueuedJob<Owner> | undefined {
    const job = this.nextFor(worker);
    if (!job) return undefined;
    this.delete(job);
    moveToEnd(this.#functions[job.priority], job.queue);
    moveToEnd(worker.functions, job.queue);
    return job;
  }
}

function moveToEnd<T>(set: Set<T>, member: T): void {
  if (set.delete(member)) set.add(member);
}
