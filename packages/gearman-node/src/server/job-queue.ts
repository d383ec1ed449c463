import type { JobPriority } from '../submit-packets.ts';
import { FunctionQueue, type Peer, type ServerJob, UniqueIndex, uniqueKeyOf } from './queue-model.ts';
import { Sleepers } from './sleepers.ts';
import { WaitingJobs } from './waiting-jobs.ts';

/** The contents of a packet that submits a job. Strings have one character per byte. */
export interface JobSubmission {
  readonly function: string;
  /** Unique key. Empty for none; `-` to derive it from the payload. */
  readonly unique: string;
  /** Name of the reducer. Default: none. */
  readonly reducer?: string;
  readonly payload: Buffer;
  readonly priority: JobPriority;
  readonly isBackground: boolean;
  /** True if the job has a start time in the future. {@link JobQueue.release} makes it assignable. */
  readonly isHeld?: boolean;
}

/** Result of a submission. */
export interface SubmitResult {
  readonly job: ServerJob;
  /** True if the job is new. False for a submission that joined an existing job. */
  readonly isNew: boolean;
}

/** Options and callbacks of a {@link JobQueue}. */
export interface JobQueueOptions {
  /** Prefix of the handles; a colon and a number follow. */
  readonly handlePrefix: string;
  /** Number of workers that may lose a job before it fails. Default: no limit. */
  readonly maxAttempts?: number | undefined;
  /** Called to notify a sleeping worker of a possible job. */
  readonly onWake: (worker: Peer) => void;
  /** Called when `maxAttempts` workers have lost the job; it is removed afterwards. */
  readonly onGiveUp: (job: ServerJob) => void;
  /** Called when a job was removed: it has ended, was cancelled, or lost its last client. */
  readonly onFinish: (job: ServerJob) => void;
  /** Calls the next slice of a long task after connections were served. */
  readonly later: (slice: () => void) => void;
}

/**
 * State of a job server: jobs, functions, workers and sleepers. It has no socket and no clock, and sees connections
 * only as {@link Peer}s. It behaves like gearmand 2, without three of its bugs:
 *
 * - A worker that removes a function loses its running job.
 * - A background job is lost with the client of a foreground job with the same key.
 * - An unused function is never removed.
 */
export class JobQueue {
  readonly #options: JobQueueOptions;
  readonly #functions = new Map<string, FunctionQueue>();
  readonly #jobs = new Map<string, ServerJob>();
  readonly #uniques = new UniqueIndex();
  readonly #waiting = new WaitingJobs();
  readonly #sleepers: Sleepers;
  readonly #tasks: SlicedTasks;
  #lastNumber = 0;
  #runningCount = 0;
  #drained: PromiseWithResolvers<void> | undefined;

  constructor(options: JobQueueOptions) {
    this.#options = options;
    this.#tasks = new SlicedTasks(options.later);
    this.#sleepers = new Sleepers((worker) => {
      if (!this.isDraining) options.onWake(worker);
    });
  }

  /** True if {@link drain} was called. A job that is submitted now would never run. */
  get isDraining(): boolean {
    return this.#drained !== undefined;
  }

  get functions(): Iterable<FunctionQueue> {
    return this.#functions.values();
  }

  get jobs(): Iterable<ServerJob> {
    return this.#jobs.values();
  }

  /** Adds a job, or joins the job with the same key. Returns undefined if the function's limit is reached. */
  submit(client: Peer, submission: JobSubmission): SubmitResult | undefined {
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

  /** Restores a job of an earlier process. Later handles have higher numbers. */
  restore(handle: string, submission: JobSubmission): ServerJob {
    const number = Number(handle.slice(handle.lastIndexOf(':') + 1));
    this.#lastNumber = Math.max(this.#lastNumber, number);
    const uniqueKey = uniqueKeyOf(submission.unique, submission.payload);
    const job = this.#add(handle, this.#function(submission.function), uniqueKey, submission);
    if (!submission.isHeld) this.#enqueue(job);
    return job;
  }

  /** Queues a held job at its start time. */
  release(job: ServerJob): void {
    if (this.#jobs.get(job.handle) === job) this.#enqueue(job);
  }

  job(handle: string): ServerJob | undefined {
    return this.#jobs.get(handle);
  }

  /** The job with a unique key, or the oldest one if several functions have such a job. */
  jobByUnique(unique: string): ServerJob | undefined {
    return this.#uniques.oldest(unique);
  }

  /** Registers a worker for a function. */
  offer(worker: Peer, name: string): void {
    const queue = this.#function(name);
    queue.workers.add(worker);
    worker.functions.add(queue);
    if (this.#sleepers.has(worker) && queue.hasWaiting) this.#sleepers.wake(worker, queue);
  }

  /** Removes a function of a worker. Its running jobs stay with the worker. */
  withdraw(worker: Peer, name: string): void {
    const queue = this.#functions.get(name);
    if (!queue) return;
    queue.workers.delete(worker);
    worker.functions.delete(queue);
    this.#removeUnused(queue);
  }

  /** Removes all functions of a worker. If there are many, they list the worker for a while. */
  withdrawAll(worker: Peer): void {
    const { functions } = worker;
    worker.functions = new Set();
    this.#tasks.run(this.#withdrawal(worker, functions));
  }

  /** Assigns the most urgent job to a worker; functions take turns. */
  grab(worker: Peer): ServerJob | undefined {
    const wokenFor = this.#sleepers.delete(worker);
    const job = this.isDraining ? undefined : this.#waiting.takeFor(worker);
    if (job) {
      job.worker = worker;
      worker.running.add(job);
      job.queue.running += 1;
      this.#runningCount += 1;
    }
    // Another sleeper may take the job for which this worker was woken.
    if (wokenFor?.hasWaiting && wokenFor !== job?.queue) this.#sleepers.wakeFor(wokenFor);
    return job;
  }

  /** Puts a worker to sleep; wakes it immediately if a job waits for it. */
  sleep(worker: Peer): void {
    this.#sleepers.add(worker);
    this.#wakeIfUseful(worker);
  }

  /**
   * Wakes every sleeping worker that can run a waiting job. Usually a job wakes only one worker, which may not grab it.
   */
  wakeAll(): void {
    for (const worker of this.#sleepers) this.#wakeIfUseful(worker);
  }

  /** Removes a job that has ended or was cancelled. */
  finish(job: ServerJob): void {
    if (job.worker) this.#takeBack(job);
    else this.#waiting.delete(job);
    this.#jobs.delete(job.handle);
    this.#uniques.delete(job);
    for (const client of job.clients) client.submitted.delete(job);
    job.queue.total -= 1;
    this.#removeUnused(job.queue);
    this.#options.onFinish(job);
  }

  /** Requeues a job that its worker has lost; removes it if it has no client. */
  requeue(job: ServerJob): void {
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

  /** Stops assigning jobs. Resolves when no job is running. */
  async drain(): Promise<void> {
    this.#drained ??= Promise.withResolvers();
    if (this.#runningCount === 0) this.#drained.resolve();
    await this.#drained.promise;
  }

  /**
   * Removes a closed connection. Requeues its running jobs, and removes waiting jobs that have no other client. If
   * there are many, other connections are served in between.
   */
  disconnect(peer: Peer): void {
    const wokenFor = this.#sleepers.delete(peer);
    this.#tasks.run(this.#departure(peer));
    this.withdrawAll(peer);
    if (wokenFor?.hasWaiting) this.#sleepers.wakeFor(wokenFor);
  }

  /** Adds a function for an operator. It persists without jobs and workers. */
  pin(name: string): FunctionQueue {
    const queue = this.#function(name);
    queue.isPinned = true;
    return queue;
  }

  /** Removes a function. Returns false, and keeps the function, if it has jobs or workers. */
  drop(queue: FunctionQueue): boolean {
    if (queue.total > 0 || queue.workers.size > 0) return false;
    return this.#functions.delete(queue.name);
  }

  function(name: string): FunctionQueue | undefined {
    return this.#functions.get(name);
  }

  #function(name: string): FunctionQueue {
    let queue = this.#functions.get(name);
    if (!queue) {
      queue = new FunctionQueue(name);
      this.#functions.set(name, queue);
    }
    return queue;
  }

  #removeUnused(queue: FunctionQueue): void {
    if (!queue.isUsed && this.#functions.get(queue.name) === queue) this.#functions.delete(queue.name);
  }

  *#departure(peer: Peer): Generator {
    for (const job of peer.submitted) {
      job.clients = job.clients.filter((client) => client !== peer);
      if (job.clients.length === 0 && !job.isBackground && !job.worker) this.finish(job);
      yield;
    }
    for (const job of peer.running) yield this.requeue(job);
  }

  /** Skips functions that the worker has registered again. */
  *#withdrawal(worker: Peer, functions: Iterable<FunctionQueue>): Generator {
    for (const queue of functions) {
      if (!worker.functions.has(queue)) {
        queue.workers.delete(worker);
        this.#removeUnused(queue);
      }
      yield;
    }
  }

  #create(queue: FunctionQueue, uniqueKey: string, submission: JobSubmission): ServerJob | undefined {
    if (queue.isFullFor(submission.priority)) return undefined;
    this.#lastNumber += 1;
    return this.#add(`${this.#options.handlePrefix}:${this.#lastNumber}`, queue, uniqueKey, submission);
  }

  #add(handle: string, queue: FunctionQueue, uniqueKey: string, submission: JobSubmission): ServerJob {
    const job: ServerJob = {
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
      timer: undefined,
    };
    this.#jobs.set(job.handle, job);
    queue.total += 1;
    this.#uniques.add(job);
    return job;
  }

  #enqueue(job: ServerJob): void {
    this.#waiting.add(job);
    this.#sleepers.wakeFor(job.queue);
  }

  #takeBack(job: ServerJob): void {
    if (!job.worker) return;
    job.worker.running.delete(job);
    job.worker = undefined;
    job.queue.running -= 1;
    this.#runningCount -= 1;
    if (this.#runningCount === 0) this.#drained?.resolve();
  }

  #wakeIfUseful(worker: Peer): void {
    const job = this.#waiting.nextFor(worker);
    if (job) this.#sleepers.wake(worker, job.queue);
  }
}

/** Steps of one slice, about half a millisecond. */
const STEPS = 512;

/** Runs long tasks in slices, one after the other, so that connections are served in between. */
class SlicedTasks {
  readonly #later: (slice: () => void) => void;
  readonly #tasks: Iterator<unknown>[] = [];

  /** @param later calls its argument after connections were served */
  constructor(later: (slice: () => void) => void) {
    this.#later = later;
  }

  /** Runs a task that yields after each step. A short task runs at once, unless others are running. */
  run(task: Iterator<unknown>): void {
    if (this.#tasks.push(task) === 1) this.#slice();
  }

  readonly #slice = (): void => {
    for (let step = 0; step < STEPS; step += 1) {
      const [task] = this.#tasks;
      if (!task) return;
      if (task.next().done) this.#tasks.shift();
    }
    this.#later(this.#slice);
  };
}
