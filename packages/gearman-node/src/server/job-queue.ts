import type { JobPriority } from '../submit-packets.ts';
import { FunctionQueue, type Peer, type QueuedJob } from './queue-model.ts';
import { Sleepers } from './sleepers.ts';
import { UniqueIndex, uniqueKeyOf } from './unique-index.ts';
import { WaitingJobs } from './waiting-jobs.ts';

/** What a packet that submits a job says. Texts have one character per byte. */
export interface Submission {
  readonly function: string;
  /** Empty for none; `-` for one that is made of the payload. */
  readonly unique: string;
  /** Default: none. */
  readonly reducer?: string;
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

/** What a {@link JobQueue} needs to know, and whom it tells. */
export interface JobQueueOptions<Owner> {
  /** What handles begin with; a colon and a number follow. */
  readonly handlePrefix: string;
  /** How many workers may be given a job and lose it. Default: any number. */
  readonly maxAttempts?: number | undefined;
  /** Tells a sleeping worker that there may be a job for it. */
  readonly onWake: (worker: Peer<Owner>) => void;
  /** So many workers lost the job as there may be; then it is over. */
  readonly onGiveUp: (job: QueuedJob<Owner>) => void;
  /** The job is over, or was cancelled, or nobody waits for it any longer. */
  readonly onFinish?: (job: QueuedJob<Owner>) => void;
}

/**
 * What a job server knows: jobs, functions, who offers and who sleeps. It has no socket and no clock, and knows the
 * connections only as {@link Peer}s. It behaves as gearmand 2 does, with gearmand's defects mended: a running job
 * stays with its worker when that stops offering the function; a background job stays when a foreground job of the
 * same key loses its client; a function that nobody uses is forgotten.
 */
export class JobQueue<Owner> {
  readonly #options: JobQueueOptions<Owner>;
  readonly #functions = new Map<string, FunctionQueue<Owner>>();
  readonly #jobs = new Map<string, QueuedJob<Owner>>();
  readonly #uniques = new UniqueIndex<Owner>();
  readonly #waiting = new WaitingJobs<Owner>();
  readonly #sleepers: Sleepers<Owner>;
  #lastNumber = 0;
  #runningCount = 0;
  #drained: PromiseWithResolvers<void> | undefined;

  constructor(options: JobQueueOptions<Owner>) {
    this.#options = options;
    this.#sleepers = new Sleepers((worker) => {
      if (!this.isDraining) options.onWake(worker);
    });
  }

  /** Whether {@link drain} was called: what is submitted from now on would never run. */
  get isDraining(): boolean {
    return this.#drained !== undefined;
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
    const uniqueKey = uniqueKeyOf(submission.unique, submission.payload);
    const existing = this.#uniques.find(uniqueKey, queue);
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

  /** Takes a job of an earlier process; new handles come after its own. */
  restore(handle: string, submission: Submission): QueuedJob<Owner> {
    const number = Number(handle.slice(handle.lastIndexOf(':') + 1));
    this.#lastNumber = Math.max(this.#lastNumber, number);
    const uniqueKey = uniqueKeyOf(submission.unique, submission.payload);
    const job = this.#add(handle, this.#function(submission.function), uniqueKey, submission);
    if (!submission.isHeld) this.#enqueue(job);
    return job;
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
    return this.#uniques.oldest(unique);
  }

  /** The worker offers a function from now on. */
  offer(worker: Peer<Owner>, name: string): void {
    const queue = this.#function(name);
    queue.workers.add(worker);
    worker.functions.add(queue);
    if (this.#sleepers.has(worker) && queue.hasWaiting) this.#sleepers.wake(worker, queue);
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
    const wokenFor = this.#sleepers.delete(worker);
    const job = this.isDraining ? undefined : this.#waiting.takeFor(worker);
    if (job) {
      job.worker = worker;
      worker.running.add(job);
      job.queue.running += 1;
      this.#runningCount += 1;
    }
    // Another sleeper may be able to do the job for which this one was woken.
    if (wokenFor?.hasWaiting && wokenFor !== job?.queue) this.#sleepers.wakeFor(wokenFor);
    return job;
  }

  /** The worker sleeps until it is woken; at once, when there is a job for it. */
  sleep(worker: Peer<Owner>): void {
    this.#sleepers.add(worker);
    this.#wakeIfUseful(worker);
  }

  /**
   * Wakes every sleeper for whom there is a job. For each job only one is woken; this is for the case that those who
   * were woken do not grab.
   */
  wakeAll(): void {
    for (const worker of this.#sleepers) this.#wakeIfUseful(worker);
  }

  /** The job is over, or an operator cancelled it. */
  finish(job: QueuedJob<Owner>): void {
    this.#waiting.delete(job);
    this.#takeBack(job);
    this.#jobs.delete(job.handle);
    this.#uniques.delete(job);
    for (const client of job.clients) client.submitted.delete(job);
    job.queue.total -= 1;
    this.#forgetUnused(job.queue);
    this.#options.onFinish?.(job);
  }

  /** The worker does not do the job any more: it waits again, unless nobody waits for it. */
  requeue(job: QueuedJob<Owner>): void {
    this.#takeBack(job);
    if (!job.isBackground && job.clients.length === 0) {
      this.finish(job);
      return;
    }
    job.retries += 1;
    if (job.retries === this.#options.maxAttempts) {
      this.#options.onGiveUp(job);
      this.finish(job);
    } else {
      this.#enqueue(job);
    }
  }

  /** Hands out nothing more. Resolves when no job runs. */
  async drain(): Promise<void> {
    this.#drained ??= Promise.withResolvers();
    if (this.#runningCount === 0) this.#drained.resolve();
    await this.#drained.promise;
  }

  /** The connection is gone: others get its jobs, and nobody gets those that it alone waited for. */
  disconnect(peer: Peer<Owner>): void {
    const wokenFor = this.#sleepers.delete(peer);
    for (const job of peer.submitted) {
      job.clients = job.clients.filter((client) => client !== peer);
      if (job.clients.length === 0 && !job.isBackground && !job.worker) this.finish(job);
    }
    this.withdrawAll(peer);
    for (const job of peer.running) this.requeue(job);
    if (wokenFor?.hasWaiting) this.#sleepers.wakeFor(wokenFor);
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
    return this.#add(`${this.#options.handlePrefix}:${this.#lastNumber}`, queue, uniqueKey, submission);
  }

  #add(
    handle: string,
    queue: FunctionQueue<Owner>,
    uniqueKey: string,
    submission: Submission,
  ): QueuedJob<Owner> {
    const job: QueuedJob<Owner> = {
      handle,
      queue,
      unique: submission.unique,
      uniqueKey,
      priority: submission.priority,
      reducer: submission.reducer ?? '',
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
    this.#uniques.add(job);
    return job;
  }

  #enqueue(job: QueuedJob<Owner>): void {
    this.#waiting.add(job);
    this.#sleepers.wakeFor(job.queue);
  }

  #takeBack(job: QueuedJob<Owner>): void {
    if (!job.worker) return;
    job.worker.running.delete(job);
    job.worker = undefined;
    job.queue.running -= 1;
    this.#runningCount -= 1;
    if (this.#runningCount === 0) this.#drained?.resolve();
  }

  #wakeIfUseful(worker: Peer<Owner>): void {
    const job = this.#waiting.nextFor(worker);
    if (job) this.#sleepers.wake(worker, job.queue);
  }
}
