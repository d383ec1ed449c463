import type { JobPriority } from '../submit-packets.ts';
import type { Peer } from './peer.ts';
import type { QueuedJob } from './queued-job.ts';

/** The jobs of one function, and who offers it. */
export class FunctionQueue<Owner> {
  /** One character per byte. */
  readonly name: string;
  /** The name as it goes into a packet. */
  readonly nameBytes: Buffer;
  readonly workers: Set<Peer<Owner>> = new Set();
  /** The jobs that wait, the oldest first: a Set, so that one in the middle can go. */
  readonly waiting: Readonly<Record<JobPriority, Set<QueuedJob<Owner>>>> = {
    high: new Set(),
    normal: new Set(),
    low: new Set(),
  };
  /** How many jobs there may be for one more of each priority to be taken; 0 is no limit. */
  readonly limits: Record<JobPriority, number> = { high: 0, normal: 0, low: 0 };
  /** An operator made it or limited it: it stays without jobs and workers. */
  isPinned = false;
  /** Jobs that wait, run, or have a start time to come. */
  total = 0;
  running = 0;

  constructor(name: string) {
    this.name = name;
    this.nameBytes = Buffer.from(name, 'latin1');
  }

  get hasWaiting(): boolean {
    return this.waiting.high.size + this.waiting.normal.size + this.waiting.low.size > 0;
  }

  get isUsed(): boolean {
    return this.isPinned || this.total > 0 || this.workers.size > 0;
  }

  isFullFor(priority: JobPriority): boolean {
    return this.limits[priority] > 0 && this.total >= this.limits[priority];
  }
}
