import type { FunctionQueue } from './function-queue.ts';
import type { QueuedJob } from './queued-job.ts';

/** A connection as the queue sees it: it may submit jobs, run jobs, or do both. */
export class Peer<Owner> {
  /** Whose place in the queue this is. */
  readonly owner: Owner;
  /** What it offers. */
  readonly functions: Set<FunctionQueue<Owner>> = new Set();
  /** The jobs it was given. */
  readonly running: Set<QueuedJob<Owner>> = new Set();
  /** The foreground jobs it waits for. */
  readonly submitted: Set<QueuedJob<Owner>> = new Set();

  constructor(owner: Owner) {
    this.owner = owner;
  }
}
