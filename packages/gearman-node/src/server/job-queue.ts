import { createHash } from 'node:crypto';
import { type JobPriority, PRIORITIES } from '../submit-packets.ts';
import { FunctionQueue } from './function-queue.ts';
import type { Peer } from './peer.ts';
import type { QueuedJob } from './queued-job.ts';

/** What a packet that submits a job says. Texts have one character per byte. */
export interface Submission {
  readonly function: string;
  /** Empty for none; `-` for one that is made of the payload. */
  readonly unique: string;
  readonly payload: Buffer;
  readonly priority: JobPriority;
  readonly isBackground: boolean;
  /** The job has a start time to come: it is handed out once it is {@link JobQueue.release}d. */
  readonly isHeld?: boolean;
}

/** What became of a submission. */
export interface Submitted<Owner> {
  readonly job: QueuedJob<Owner>;
  /** False for a submission that joined another. */
  readonly isNew: boolean;
}

/**
 * What a job server knows: jobs, functions, who offers and who sleeps. It has no socket and no clock, and knows the
 * connections only as {@link Peer}s. It behaves as gearmand 2 does, with gearmand's defects mended: a running job
 * stays with its worker when that stops offering the function; a background job stays when a foreground job of the
 * same key loses its client; a function that nobody uses is forgotten.
 */
export class JobQueue<Owner> {
  readonly #handlePrefix: string;
  readonly #wake: (worker: Peer<Owner>) => void;
  readonly #functions = new Map<string, FunctionQueue<Owner>>();
  readonly #jobs = new Map<string, QueuedJob<Owner>>();
  /** By unique key, then by function. */
  readonly #uniques = new Map<string, Map<FunctionQueue<Owner>, QueuedJob<Owner>>>();
  /** Functions with waiting jobs, the one that was served longest ago first. */
  readonly #ready: Readonly<Record<JobPriority, Set<FunctionQueue<Owner>>>> = {
    high: new Set(),
    normal: new Set(),
    low: new Set(),
  };
  readonly #asleep = new Set<Peer<Owner>>();
  #lastNumber = 0;

  /**
   * @param handlePrefix what handles begin with; a colon and a number follow
   * @param wake tells a sleeping worker that there may be a job for it
   */
  constructor(handlePrefix: string, wake: (worker: Peer<Owner>) => void) {
    this.#handlePrefix = handlePrefix;
    this.#wake = wake;
  }

  get functions(): Iterable<FunctionQueue<Owner>> {
    return this.#functions.values();
  }

  get jobs(): Iterable<QueuedJob<Owner>> {
    return this.#jobs.values();
  }

  /** Takes a job, or joins one that has the same key. Returns undefined when an operator's limit is reached. */
  submit(client: Peer<Owner>, submission: Submission): Submitted<Owner> | undefined {
    const queue = this.#function(submission.function);
    const uniqueKey = keyOf(submission);
    const existing = this.#uniques.get(uniqueKey)?.get(queue);
    const job = existing ?? this.#create(queue, uniqueKey, submission);
    if (!job) return undefined;
    if (submission.isBackground) {
      job.isBackground = true;
    } else {
      job.clients.push(client);
      client.submitted.add(job);
    }
    if (!existing && !submission.isHeld) this.#enqueue(job);
    return { job, isNew: !existing };
  }

  /** The start time of a held job has come. */
  release(job: QueuedJob<Owner>): void {
    if (this.#jobs.get(job.handle) === job) this.#enqueue(job);
  }

  job(handle: string): QueuedJob<Owner> | undefined {
    return this.#jobs.get(handle);
  }

  /** A job by its unique key; of several functions, that of the oldest. */
  jobByUnique(unique: string): QueuedJob<Owner> | undefined {
    return this.#uniques.get(unique)?.values().next().value;
  }

  /** The worker offers a function from now on. */
  offer(worker: Peer<Owner>, name: string): void {
    const queue = this.#function(name);
    queue.workers.add(worker);
    worker.functions.add(queue);
    if (this.#asleep.has(worker) && queue.hasWaiting) this.#wakeOne(worker, queue);
  }

  /** The worker offers a function no more. A job that it runs stays with it. */
  withdraw(worker: Peer<Owner>, name: string): void {
    const queue = this.#functions.get(name);
    if (!queue) return;
    queue.workers.delete(worker);
    worker.functions.delete(queue);
    this.#forgetUnused(queue);
  }

  withdrawAll(worker: Peer<Owner>): void {
    for (const queue of worker.functions) this.withdraw(worker, queue.name);
  }

  /** Gives the worker the most urgent job it can do, the functions taking turns. */
  grab(worker: Peer<Owner>): QueuedJob<Owner> | undefined {
    this.#asleep.delete(worker);
    const { wokenFor } = worker;
    worker.wokenFor = undefined;
    const job = this.#assign(worker);
    // Another sleeper may be able to do the job for which this one was woken.
    if (wokenFor?.hasWaiting && wokenFor !== job?.queue) this.#wakeFor(wokenFor);
    return job;
  }

  /** The worker sleeps until it is woken; at once, when there is a job for it. */
  sleep(worker: Peer<Owner>): void {
    worker.wokenFor = undefined;
    this.#asleep.add(worker);
    const queue = this.#nextFor(worker);
    if (queue) this.#wakeOne(worker, queue);
  }

  /**
   * Wakes every sleeper for whom there is a job. For each job only one is woken; this is for the case that those who
   * were woken do not grab.
   */
  wakeAll(): void {
    for (const worker of this.#asleep) {
      const queue = this.#nextFor(worker);
      if (queue) this.#wakeOne(worker, queue);
    }
  }

  /** The job is over, or an operator cancelled it. */
  finish(job: QueuedJob<Owner>): void {
    this.#dequeue(job);
    this.#release(job);
    this.#jobs.delete(job.handle);
    const sameUnique = this.#uniques.get(job.uniqueKey);
    sameUnique?.delete(job.queue);
    if (sameUnique?.size === 0) this.#uniques.delete(job.uniqueKey);
    for (const client of job.clients) client.submitted.delete(job);
    job.queue.total -= 1;
    this.#forgetUnused(job.queue);
  }

  /** The worker does not do the job any more: it waits again, unless nobody waits for it. */
  requeue(job: QueuedJob<Owner>): void {
    this.#release(job);
    if (!job.isBackground && job.clients.length === 0) {
      this.finish(job);
      return;
    }
    job.retries += 1;
    this.#enqueue(job);
  }

  /** The connection is gone: others get its jobs, and nobody gets those that it alone waited for. */
  disconnect(peer: Peer<Owner>): void {
    this.#asleep.delete(peer);
    for (const job of peer.submitted) {
      job.clients = job.clients.filter((client) => client !== peer);
      if (job.clients.length === 0 && !job.isBackground && !job.worker) this.finish(job);
    }
    this.withdrawAll(peer);
    for (const job of peer.running) this.requeue(job);
    if (peer.wokenFor?.hasWaiting) this.#wakeFor(peer.wokenFor);
  }

  /** Makes a function known, for an operator: it stays without jobs and workers. */
  pin(name: string): FunctionQueue<Owner> {
    const queue = this.#function(name);
    queue.isPinned = true;
    return queue;
  }

  /** Forgets a function. Returns false, and does nothing, while it has jobs or workers. */
  drop(queue: FunctionQueue<Owner>): boolean {
    if (queue.total > 0 || queue.workers.size > 0) return false;
    return this.#functions.delete(queue.name);
  }

  function(name: string): FunctionQueue<Owner> | undefined {
    return this.#functions.get(name);
  }

  #function(name: string): FunctionQueue<Owner> {
    let queue = this.#functions.get(name);
    if (!queue) {
      queue = new FunctionQueue(name);
      this.#functions.set(name, queue);
    }
    return queue;
  }

  #forgetUnused(queue: FunctionQueue<Owner>): void {
    if (!queue.isUsed) this.#functions.delete(queue.name);
  }

  #create(
    queue: FunctionQueue<Owner>,
    uniqueKey: string,
    submission: Submission,
  ): QueuedJob<Owner> | undefined {
    if (queue.isFullFor(submission.priority)) return undefined;
    this.#lastNumber += 1;
    const job: QueuedJob<Owner> = {
      handle: `${this.#handlePrefix}:${this.#lastNumber}`,
      queue,
      unique: submission.unique,
      uniqueKey,
      priority: submission.priority,
      payload: submission.payload,
      isBackground: submission.isBackground,
      clients: [],
      worker: undefined,
      retries: 0,
      numerator: 0,
      denominator: 0,
    };
    this.#jobs.set(job.handle, job);
    queue.total += 1;
    if (uniqueKey !== '') {
      const sameUnique = this.#uniques.get(uniqueKey) ?? new Map<FunctionQueue<Owner>, QueuedJob<Owner>>();
      this.#uniques.set(uniqueKey, sameUnique.set(queue, job));
    }
    return job;
  }

  #enqueue(job: QueuedJob<Owner>): void {
    job.queue.waiting[job.priority].add(job);
    this.#ready[job.priority].add(job.queue);
    this.#wakeFor(job.queue);
  }

  #dequeue(job: QueuedJob<Owner>): void {
    const waiting = job.queue.waiting[job.priority];
    waiting.delete(job);
    if (waiting.size === 0) this.#ready[job.priority].delete(job.queue);
  }

  /** Takes the job from its worker. */
  #release(job: QueuedJob<Owner>): void {
    if (!job.worker) return;
    job.worker.running.delete(job);
    job.worker = undefined;
    job.queue.running -= 1;
  }

  #assign(worker: Peer<Owner>): QueuedJob<Owner> | undefined {
    for (const priority of PRIORITIES) {
      const queue = firstInBoth(this.#ready[priority], worker.functions);
      const job = queue?.waiting[priority].values().next().value;
      if (!queue || !job) continue;
      this.#dequeue(job);
      moveToEnd(this.#ready[priority], queue);
      moveToEnd(worker.functions, queue);
      job.worker = worker;
      worker.running.add(job);
      queue.running += 1;
      return job;
    }
    return undefined;
  }

  #nextFor(worker: Peer<Owner>): FunctionQueue<Owner> | undefined {
    for (const priority of PRIORITIES) {
      const queue = firstInBoth(this.#ready[priority], worker.functions);
      if (queue) return queue;
    }
    return undefined;
  }

  #wakeFor(queue: FunctionQueue<Owner>): void {
    const worker = firstInBoth(this.#asleep, queue.workers);
    if (worker) this.#wakeOne(worker, queue);
  }

  #wakeOne(worker: Peer<Owner>, queue: FunctionQueue<Owner>): void {
    this.#asleep.delete(worker);
    worker.wokenFor = queue;
    this.#wake(worker);
  }
}

/** The key by which a submission coalesces with others. */
function keyOf(submission: Submission): string {
  if (submission.unique !== '-') return submission.unique;
  return `-${createHash('sha256').update(submission.payload).digest('base64')}`;
}

/** The first member of both, looked for in the smaller one. */
function firstInBoth<T>(a: ReadonlySet<T>, b: ReadonlySet<T>): T | undefined {
  const [smaller, larger] = a.size <= b.size ? [a, b] : [b, a];
  for (const member of smaller) {
    if (larger.has(member)) return member;
  }
  return undefined;
}

function moveToEnd<T>(set: Set<T>, member: T): void {
  if (set.delete(member)) set.add(member);
}
