import { createHash } from 'node:crypto';
import type { FunctionQueue, QueuedJob } from './queue-model.ts';

/** The jobs that others may join, by unique key and function. */
export class UniqueIndex<Owner> {
  readonly #jobs = new Map<string, Map<FunctionQueue<Owner>, QueuedJob<Owner>>>();

  find(uniqueKey: string, queue: FunctionQueue<Owner>): QueuedJob<Owner> | undefined {
    return this.#jobs.get(uniqueKey)?.get(queue);
  }

  /** Of several functions' jobs, the oldest. */
  oldest(uniqueKey: string): QueuedJob<Owner> | undefined {
    return this.#jobs.get(uniqueKey)?.values().next().value;
  }

  add(job: QueuedJob<Owner>): void {
    if (job.uniqueKey === '') return;
    const sameKey = this.#jobs.get(job.uniqueKey) ?? new Map<FunctionQueue<Owner>, QueuedJob<Owner>>();
    this.#jobs.set(job.uniqueKey, sameKey.set(job.queue, job));
  }

  delete(job: QueuedJob<Owner>): void {
    const sameKey = this.#jobs.get(job.uniqueKey);
    sameKey?.delete(job.queue);
    if (sameKey?.size === 0) this.#jobs.delete(job.uniqueKey);
  }
}

/** What a job coalesces by: its unique key, or for `-` its payload. Empty for a job that does not. */
export function uniqueKeyOf(unique: string, payload: Buffer): string {
  return unique === '-' ? `-${createHash('sha256').update(payload).digest('base64')}` : unique;
}
