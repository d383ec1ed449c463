import { createHash } from 'node:crypto';
import type { FunctionQueue, ServerJob } from './queue-model.ts';

/** Jobs by unique key and function, for coalescing. */
export class UniqueIndex<Owner> {
  readonly #jobs = new Map<string, Map<FunctionQueue<Owner>, ServerJob<Owner>>>();

  find(uniqueKey: string, queue: FunctionQueue<Owner>): ServerJob<Owner> | undefined {
    return this.#jobs.get(uniqueKey)?.get(queue);
  }

  /** The oldest job with a key, of any function. */
  oldest(uniqueKey: string): ServerJob<Owner> | undefined {
    return this.#jobs.get(uniqueKey)?.values().next().value;
  }

  add(job: ServerJob<Owner>): void {
    if (job.uniqueKey === '') return;
    const sameKey = this.#jobs.get(job.uniqueKey) ?? new Map<FunctionQueue<Owner>, ServerJob<Owner>>();
    this.#jobs.set(job.uniqueKey, sameKey.set(job.queue, job));
  }

  delete(job: ServerJob<Owner>): void {
    const sameKey = this.#jobs.get(job.uniqueKey);
    sameKey?.delete(job.queue);
    if (sameKey?.size === 0) this.#jobs.delete(job.uniqueKey);
  }
}

/** Key for coalescing: the unique key, or for `-` a hash of the payload. Empty for none. */
export function uniqueKeyOf(unique: string, payload: Buffer): string {
  return unique === '-' ? `-${createHash('sha256').update(payload).digest('base64')}` : unique;
}
