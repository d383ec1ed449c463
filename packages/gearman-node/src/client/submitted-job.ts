/* oxlint-disable unicorn/no-thenable -- a job is awaitable by design */
import { checkPacketSize } from '../codec/packet-size.ts';
import { GearmanError, JobExceptionError, JobFailedError, JobLostError } from '../errors.ts';
import { LongTimer } from '../long-timer.ts';
import { abortedError } from '../unless-aborted.ts';
import { type FlowControl, type JobEvent, JobEvents } from './job-events.ts';
import { type Submission, type SubmitOptions, submissionOf } from './submission.ts';

/**
 * A job that was submitted: awaitable for its result, async-iterable for what its worker sends before. A loop over it
 * ends, or throws, as the result does; and it throws ProtocolError for a status whose numbers are none, GearmanError
 * `events-dropped` when it began too late.
 */
export interface Job extends PromiseLike<Buffer>, AsyncIterable<JobEvent> {
  readonly function: string;
  /**
   * The server's name for the job, once a server has accepted it.
   *
   * Rejects as {@link result} does when none accepts it.
   */
  readonly handle: Promise<string>;
  /**
   * The payload of WORK_COMPLETE; that of a background job is empty, and there as soon as a server accepted the job.
   *
   * Rejects with JobFailedError, JobExceptionError, JobLostError, ServerError, ConnectionError (no server can be
   * reached), or GearmanError `job-timeout`, `aborted` or `closed`.
   */
  readonly result: Promise<Buffer>;
}

/** A job as the client sees it: what the caller gets, and what the connections do with it. */
export class SubmittedJob implements Job {
  readonly function: string;
  readonly #options: SubmitOptions;
  readonly #resubmit: (job: SubmittedJob) => void;
  readonly #handle = new LazyPromise<string>();
  readonly #result = new LazyPromise<Buffer>();
  readonly #timer: LongTimer | undefined;
  #submission: Submission | undefined;
  #events: JobEvents | undefined;
  #flow: FlowControl | undefined;
  /** Empty until a server has accepted the job. */
  #lastHandle = '';
  #isSettled = false;
  #error: GearmanError | undefined;
  #isResubmitted = false;

  /**
   * @param resubmit sends the job again after its server was lost
   * @param maxPacketSize bytes of the largest packet that may be sent
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

  /** Packet to send; undefined once it is no longer needed, so that the payload is freed. */
  get submission(): Submission | undefined {
    return this.#submission;
  }

  get isBackground(): boolean {
    return this.#options.background ?? false;
  }

  /** Whether nobody waits for the job any longer. */
  get isSettled(): boolean {
    return this.#isSettled;
  }

  /** Whether a server has had the job before, so that it waits for the next server however long that takes. */
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

  /** A server accepted the job. */
  accept(handle: string, flow: FlowControl): void {
    this.#lastHandle = handle;
    this.#flow = flow;
    if (this.#options.onServerLost !== 'resubmit') this.#submission = undefined;
    this.#handle.resolve(handle);
    if (this.isBackground) this.complete(Buffer.alloc(0));
  }

  /** The worker sent something before the end. */
  push(event: JobEvent): void {
    if (!this.#isSettled) this.#eventsOnce().push(event);
  }

  /** What the worker sends before the end cannot be read: only a loop over it is told. */
  endEvents(error: GearmanError): void {
    this.#eventsOnce().end(error);
  }

  complete(data: Buffer): void {
    this.#settle();
    this.#result.resolve(data);
  }

  fail(): void {
    this.reject(new JobFailedError(this.function, this.#lastHandle));
  }

  throwException(data: Buffer): void {
    this.reject(new JobExceptionError(this.function, this.#lastHandle, data));
  }

  reject(error: GearmanError): void {
    this.#settle(error);
    this.#handle.reject(error);
    this.#result.reject(error);
  }

  /** The server that had the job, or was about to get it, is gone. */
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
    const message = `${name} of ${this.function} did not end in ${this.#options.timeout} ms`;
    this.reject(new GearmanError('job-timeout', message));
  };

  readonly #onAbort = (): void => this.reject(abortedError(this.#options.signal as AbortSignal));

  #settle(error?: GearmanError): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    this.#error = error;
    this.#submission = undefined;
    this.#timer?.stop();
    this.#options.signal?.removeEventListener('abort', this.#onAbort);
    this.#events?.end(error);
  }

  /** Most jobs have no events, and nobody asks for them. */
  #eventsOnce(): JobEvents {
    if (!this.#events) {
      this.#events = new JobEvents({ hold: () => this.#flow?.hold(), release: () => this.#flow?.release() });
      if (this.#isSettled) this.#events.end(this.#error);
    }
    return this.#events;
  }
}

/**
 * A promise that is made when somebody asks for it. A rejection that nobody asks for is then no unhandled one: who
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

  /** Only the first of all calls to settle counts. */
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
