import type { JobPriority } from '../submit-packets.ts';

/** A job that a server has. */
export interface QueuedJob<Owner> {
  readonly handle: string;
  readonly queue: FunctionQueue<Owner>;
  /** As it was submitted, one character per byte. */
  readonly unique: string;
  /** What it coalesces by; empty for a job that does not. */
  readonly uniqueKey: string;
  readonly priority: JobPriority;
  /** What goes along to a worker that takes reducers; empty for none. */
  readonly reducer: string;
  readonly payload: Buffer;
  /** The job outlives those who submitted it. */
  isBackground: boolean;
  /** Those who wait for it; one that submitted it twice is here twice, as for gearmand. */
  clients: Peer<Owner>[];
  /** Who runs it; undefined while it waits. */
  worker: Peer<Owner> | undefined;
  /** How often it was given to a worker that was then lost. */
  retries: number;
  /** How far it has come, as its worker said last. */
  numerator: number;
  denominator: number;
}

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

/** The first member of both, looked for in the smaller one. */
export function firstInBoth<T>(a: ReadonlySet<T>, b: ReadonlySet<T>): T | undefined {
  const [smaller, larger] = a.size <= b.size ? [a, b] : [b, a];
  for (const member of smaller) {
    if (larger.has(member)) return member;
  }
  return undefined;
}
