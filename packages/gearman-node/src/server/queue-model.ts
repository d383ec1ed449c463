import { createHash } from 'node:crypto';
import type { LongTimer } from '../long-timer.ts';
import type { ArgumentValues, PacketName } from '../packets.ts';
import type { JobPriority } from '../submit-packets.ts';

/** A job of a server, waiting or running. */
export interface ServerJob {
  readonly handle: string;
  readonly queue: FunctionQueue;
  /** The unique key as submitted, with one character per byte. */
  readonly unique: string;
  /** Key for coalescing; empty for none. */
  readonly uniqueKey: string;
  readonly priority: JobPriority;
  /** Sent to workers that use GRAB_JOB_ALL; empty for none. */
  readonly reducer: string;
  readonly payload: Buffer;
  /** True if the job does not depend on its clients. */
  isBackground: boolean;
  /** The clients that wait for the job. As in gearmand, a client that submitted it twice is listed twice. */
  clients: Peer[];
  /** The worker that runs the job; undefined while it waits. */
  worker: Peer | undefined;
  /** Number of workers that lost the job. */
  retries: number;
  /** The last progress that the worker reported. */
  numerator: number;
  denominator: number;
  /** The timer of its start time, or of the time limit of its worker. */
  timer: LongTimer | undefined;
}

/** A connection with its state in the queue, which never sends: it may submit jobs, run jobs, or do both. */
export abstract class Peer {
  /** The functions that the connection offers. */
  functions: Set<FunctionQueue> = new Set();
  /** The jobs that the connection runs. */
  readonly running: Set<ServerJob> = new Set();
  /** The foreground jobs whose results the connection waits for. */
  readonly submitted: Set<ServerJob> = new Set();
  /** True if it gets WORK_EXCEPTION rather than WORK_FAIL. */
  abstract wantsExceptions: boolean;

  abstract send<N extends PacketName>(name: N, ...args: ArgumentValues<N>): void;

  /**
   * Sends a packet whose arguments are already joined, which is faster.
   *
   * @param text all arguments but the payload, with the NULs after them and one character per byte
   */
  abstract sendJoined(name: PacketName, text: string, payload?: Uint8Array): void;
}

/**
 * Shared by functions without jobs, which are most functions of a large site. Their own Sets would take most of the
 * memory.
 */
const NONE_WAITING: Readonly<Record<JobPriority, Set<never>>> = {
  high: new Set(),
  normal: new Set(),
  low: new Set(),
};

/** The jobs and workers of one function. */
export class FunctionQueue {
  /** The function name, with one character per byte. */
  readonly name: string;
  readonly workers: Set<Peer> = new Set();
  /** The waiting jobs, the oldest first. A Set allows any job to be removed quickly. */
  waiting: Readonly<Record<JobPriority, Set<ServerJob>>> = NONE_WAITING;
  /** Number of jobs at which jobs of a priority are rejected; 0 for no limit. */
  readonly limits: Record<JobPriority, number> = { high: 0, normal: 0, low: 0 };
  /** True if an operator created or limited the function, which then persists without jobs and workers. */
  isPinned = false;
  /** Number of jobs, including those with a start time in the future. */
  total = 0;
  running = 0;

  constructor(name: string) {
    this.name = name;
  }

  addWaiting(job: ServerJob): void {
    if (this.waiting === NONE_WAITING) this.waiting = { high: new Set(), normal: new Set(), low: new Set() };
    this.waiting[job.priority].add(job);
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

/** The first common member, found by iterating over the smaller set. */
export function firstInBoth<T>(a: ReadonlySet<T>, b: ReadonlySet<T>): T | undefined {
  if (a.size > b.size) return firstInBoth(b, a);
  for (const member of a) {
    if (b.has(member)) return member;
  }
  return undefined;
}

/** Jobs by unique key and function, for coalescing. */
export class UniqueIndex {
  readonly #jobs = new Map<string, Map<FunctionQueue, ServerJob>>();

  find(uniqueKey: string, queue: FunctionQueue): ServerJob | undefined {
    return uniqueKey === '' ? undefined : this.#jobs.get(uniqueKey)?.get(queue);
  }

  /** The oldest job with a key, of any function. */
  oldest(uniqueKey: string): ServerJob | undefined {
    return this.#jobs.get(uniqueKey)?.values().next().value;
  }

  add(job: ServerJob): void {
    if (job.uniqueKey === '') return;
    const sameKey = this.#jobs.get(job.uniqueKey) ?? new Map<FunctionQueue, ServerJob>();
    this.#jobs.set(job.uniqueKey, sameKey.set(job.queue, job));
  }

  delete(job: ServerJob): void {
    if (job.uniqueKey === '') return;
    const sameKey = this.#jobs.get(job.uniqueKey);
    sameKey?.delete(job.queue);
    if (sameKey?.size === 0) this.#jobs.delete(job.uniqueKey);
  }
}

/** Key for coalescing: the unique key, or for `-` a hash of the payload. Empty for none. */
export function uniqueKeyOf(unique: string, payload: Buffer): string {
  return unique === '-' ? `-${createHash('sha256').update(payload).digest('base64')}` : unique;
}
