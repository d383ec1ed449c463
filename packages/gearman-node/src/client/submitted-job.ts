/* oxlint-disable unicorn/no-thenable -- a job is awaitable by design */
import { checkPacketSize } from '../codec/packet-size.ts';
import { GearmanError, JobExceptionError, JobFailedError, JobLostError } from '../errors.ts';
import { LongTimer } from '../long-timer.ts';
import { abortedError } from '../unless-aborted.ts';
import { type FlowControl, type JobEvent, JobEvents } from './job-events.ts';
import { type Submission, type SubmitOptions, submissionOf } from './submission.ts';

/**
 * A submitted job. Await it for its result; iterate over it for the events that its worker sends before the end. A loop
 * ends when the job does, and throws the error of a failed job. It also throws a ProtocolError for a status with
 * invalid numbers, and a GearmanError `events-dropped` if it started too late.
 */
export interface Job extends PromiseLike<Buffer>, AsyncIterable<JobEvent> {
  readonly function: string;
  /**
   * The server's identifier of the job, once a server has accepted it.
   *
   * Rejects like {@link result} if no server accepts it.
   */
  readonly handle: Promise<string>;
  /**
   * The payload of WORK_COMPLETE. It is empty for a background job, once a server has accepted it.
   *
   * Rejects with JobFailedError, JobExceptionError, JobLostError, ServerError, ConnectionError (no server is
   * reachable), or GearmanError `job-timeout`, `aborted` or `closed`.
   */
  readonly result: Promise<Buffer>;
}

export interface JobConnection extends FlowControl {
  /** Forgets the job, for which nobody waits. */
  readonly abandon: () => void;
}

/** A {@link Job} with the methods that its connections use. */
export class SubmittedJob implements Job {
  readonly function: string;
  readonly #options: SubmitOptions;
  readonly #resubmit: (job: SubmittedJob) => void;
  readonly #handle = new LazyPromise<string>();
  readonly #result = new LazyPromise<Buffer>();
  readonly #timer: LongTimer | undefined;
  #submission: Submission | undefined;
  #events: JobEvents | undefined;
  #connection: JobConnection | undefined;
  /** Handle of the latest submission. Empty until a server has accepted the job. */
  #lastHandle = '';
  #lastWarning: Buffer | undefined;
  #isSettled = false;
  #error: GearmanError | undefined;
  #isResubmitted = false;

  /**
   * @param resubmit sends the job again after the connection was lost
   * @param maxPacketSize maximum size of a packet in bytes
   * @throws GearmanError `invalid-argument`, `packet-too-large`
   */
  constructor(
    functionName: string,
    payload: string | Uint8Array,
    options: SubmitOptions,
    resubmit: (job: SubmittedJob) => void,
    maxPacketSize?: number,
  ) {
    const { timeout, signal } = options;
    this.function = functionName;
    this.#submission = submissionOf(functionName, payload, options);
    checkPacketSize(this.#submission.packet, this.#submission.arguments, maxPacketSize);
    this.#options = options;
    this.#resubmit = resubmit;
    this.#timer = timeout === undefined ? undefined : new LongTimer(timeout, this.#onTimeout);
    signal?.addEventListener('abort', this.#onAbort);
    if (signal?.aborted) this.#onAbort();
  }

  get handle(): Promise<string> {
    return this.#handle.promise;
  }

  get result(): Promise<Buffer> {
    return this.#result.promise;
  }

  /** The packet to send. Undefined once it is no longer needed, so that its memory is freed. */
  get submission(): Submission | undefined {
    return this.#submission;
  }

  get isBackground(): boolean {
    return this.#options.background ?? false;
  }

  /** True if the result is settled. */
  get isSettled(): boolean {
    return this.#isSettled;
  }

  /** True if the job is being resubmitted, and waits for a server without a time limit. */
  get isResubmitted(): boolean {
    return this.#isResubmitted;
  }

  // biome-ignore lint/suspicious/noThenProperty: a job is awaitable by design
  then<T = Buffer, E = never>(
    onfulfilled?: ((value: Buffer) => T | PromiseLike<T>) | null,
    onrejected?: ((reason: unknown) => E | PromiseLike<E>) | null,
  ): Promise<T | E> {
    return this.result.then(onfulfilled, onrejected);
  }

  [Symbol.asyncIterator](): AsyncIterator<JobEvent, undefined> {
    return this.#eventsOnce()[Symbol.asyncIterator]();
  }

  /** Handles JOB_CREATED. */
  accept(handle: string, connection: JobConnection): void {
    this.#lastHandle = handle;
    this.#connection = connection;
    if (this.#options.onServerLost !== 'resubmit') this.#submission = undefined;
    this.#handle.resolve(handle);
    if (this.isBackground) this.complete(Buffer.alloc(0));
  }

  push(event: JobEvent): void {
    if (this.#isSettled) return;
    if (event.type === 'warning') this.#lastWarning = event.data;
    this.#eventsOnce().push(event);
  }

  /** Ends the events with an error, which only loops get. */
  endEvents(error: GearmanError): void {
    this.#eventsOnce().end(error);
  }

  complete(data: Buffer): void {
    this.#settle();
    this.#result.resolve(data);
  }

  fail(): void {
    this.reject(new JobFailedError(this.function, this.#lastHandle, this.#lastWarning));
  }

  throwException(data: Buffer): void {
    this.reject(new JobExceptionError(this.function, this.#lastHandle, data, this.#lastWarning));
  }

  reject(error: GearmanError): void {
    this.#settle(error);
    this.#handle.reject(error);
    this.#result.reject(error);
  }

  /** Handles the loss of the connection: resubmits or rejects the job. */
  lose(cause: GearmanError): void {
    if (this.#isSettled) return;
    if (cause.code === 'closed') {
      this.reject(cause);
    } else if (this.#options.onServerLost === 'resubmit') {
      this.#isResubmitted = true;
      this.#resubmit(this);
    } else {
      this.reject(new JobLostError(this.function, this.#lastHandle || undefined, { cause }));
    }
  }

  readonly #onTimeout = (): void => {
    const name = this.#lastHandle ? `job ${this.#lastHandle}` : 'a job';
    const message = `${name} of ${this.function} did not end within ${this.#options.timeout} ms`;
    this.#abandon(new GearmanError('job-timeout', message));
  };

  readonly #onAbort = (): void => this.#abandon(abortedError(this.#options.signal as AbortSignal));

  /** Stops waiting for the job, which stays on the server. */
  #abandon(error: GearmanError): void {
    this.reject(error);
    this.#connection?.abandon();
  }

  #settle(error?: GearmanError): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    this.#error = error;
    this.#submission = undefined;
    this.#timer?.stop();
    this.#options.signal?.removeEventListener('abort', this.#onAbort);
    this.#events?.end(error);
  }

  /** Creates the events on demand: most jobs have none. */
  #eventsOnce(): JobEvents {
    if (!this.#events) {
      const pause = (): void => this.#connection?.pause();
      this.#events = new JobEvents({ pause, resume: () => this.#connection?.resume() });
      if (this.#isSettled) this.#events.end(this.#error);
    }
    return this.#events;
  }
}

/**
 * A promise that is created on first use, so that the rejection of an unused promise is not unhandled. A caller who
 * awaits a job's handle need not await its result.
 */
export class LazyPromise<T> {
  #deferred: PromiseWithResolvers<T> | undefined;
  #settle: ((deferred: PromiseWithResolvers<T>) => void) | undefined;

  get promise(): Promise<T> {
    if (!this.#deferred) {
      this.#deferred = Promise.withResolvers<T>();
      this.#settle?.(this.#deferred);
    }
    return this.#deferred.promise;
  }

  /** Only the first call of `resolve` or `reject` has an effect. */
  resolve(value: T): void {
    this.#settleWith((deferred) => deferred.resolve(value));
  }

  reject(error: Error): void {
    this.#settleWith((deferred) => deferred.reject(error));
  }

  #settleWith(settle: (deferred: PromiseWithResolvers<T>) => void): void {
    if (this.#settle) return;
    this.#settle = settle;
    if (this.#deferred) settle(this.#deferred);
  }
}
