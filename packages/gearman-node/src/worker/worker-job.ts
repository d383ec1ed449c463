import { types } from 'node:util';
import { checkCount, checkPayload } from '../argument-checks.ts';
import { checkPacketSize } from '../codec/packet-size.ts';
import { type GearmanError, JobFailure } from '../errors.ts';
import type { ArgumentValues, PacketName } from '../packets.ts';

/** What a handler gets: one job that a server assigned to this worker. */
export interface WorkerJob {
  /** The server's name for the job, for instance `H:host:42`. */
  readonly handle: string;
  /** The function that was asked for. */
  readonly function: string;
  /** The submitter's key for coalescing; empty if it gave none. */
  readonly unique: string;
  /** What the submitter gave as the job's reducer; empty unless the worker has `takesReducers`. */
  readonly reducer: string;
  /** The argument, as the submitter sent it. Copy what is kept beyond the job: it may be part of a larger buffer. */
  readonly payload: Buffer;
  /** Aborted when the job must stop; its reason is the GearmanError that says why. */
  readonly signal: AbortSignal;
  /**
   * Aborted when the job's server is lost. A server such as gearmand then gives the job to another worker, and the
   * result of this run goes nowhere.
   */
  readonly connectionLost: AbortSignal;
  /**
   * Resolves once the server has had the final packet of this job, or when the server is lost or does not answer
   * ECHO_REQ. Never rejects. What is kept for the case that the job runs again may be dropped then.
   */
  readonly acknowledged: Promise<void>;

  /**
   * Tells the submitter how far the job has come (WORK_STATUS), in any unit. Does nothing once the job is over.
   *
   * @throws GearmanError `invalid-argument` unless both are whole numbers from 0 on: no server knows others
   */
  sendStatus(numerator: number, denominator: number): void;
  /**
   * Sends a piece of the result (WORK_DATA). Resolves when there is room for the next one.
   *
   * @throws GearmanError `invalid-argument` unless the data is text or bytes, `packet-too-large`
   */
  sendData(data: string | Uint8Array): Promise<void>;
  /** Sends a warning (WORK_WARNING). Resolves when there is room for the next one. @throws as {@link sendData} */
  sendWarning(data: string | Uint8Array): Promise<void>;
}

/** What a job needs of the connection it came over. */
export interface JobConnection {
  send<N extends PacketName>(name: N, ...args: ArgumentValues<N>): void;
  /** Resolves when there is room to send more. */
  writable(): Promise<void>;
  /** Resolves when the server has had all that was sent, as far as that can be known. */
  confirm(): Promise<void>;
  /** Whether the server takes a job for running until it gets WORK_FAIL, even after WORK_EXCEPTION. */
  wantsFailAfterException(): boolean;
  /** Bytes of the largest packet that may be sent. Default 64 MiB. */
  readonly maxPacketSize?: number | undefined;
}

/** What JOB_ASSIGN said. */
export interface Assignment {
  readonly handle: string;
  readonly function: string;
  readonly unique: string;
  readonly reducer: string;
  readonly payload: Buffer;
}

/** A job as the worker sees it: what the handler gets, and what the connection does with it. */
export class AssignedJob implements WorkerJob {
  readonly handle: string;
  readonly function: string;
  readonly unique: string;
  readonly reducer: string;
  readonly payload: Buffer;
  readonly #connection: JobConnection;
  readonly #stop = new LazyAbort();
  readonly #lost = new LazyAbort();
  #isOver = false;
  #acknowledged: Promise<void> | undefined;
  #acknowledge: ((confirmed: Promise<void>) => void) | undefined;

  constructor(assignment: Assignment, connection: JobConnection) {
    this.handle = assignment.handle;
    this.function = assignment.function;
    this.unique = assignment.unique;
    this.reducer = assignment.reducer;
    this.payload = assignment.payload;
    this.#connection = connection;
  }

  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  get connectionLost(): AbortSignal {
    return this.#lost.signal;
  }

  get acknowledged(): Promise<void> {
    this.#acknowledged ??= this.#isOver
      ? this.#connection.confirm()
      : new Promise((resolve) => {
          this.#acknowledge = resolve;
        });
    return this.#acknowledged;
  }

  sendStatus(numerator: number, denominator: number): void {
    checkCount(numerator);
    checkCount(denominator);
    if (!this.#isOver) this.#connection.send('WORK_STATUS', this.handle, numerator, denominator);
  }

  async sendData(data: string | Uint8Array): Promise<void> {
    await this.#send('WORK_DATA', data);
  }

  async sendWarning(data: string | Uint8Array): Promise<void> {
    await this.#send('WORK_WARNING', data);
  }

  /** @throws GearmanError `packet-too-large` */
  checkResult(data: string | Uint8Array): void {
    checkPacketSize('WORK_COMPLETE', [this.handle, data], this.#connection.maxPacketSize);
  }

  /** The job must stop. */
  stop(reason: GearmanError): void {
    this.#stop.abort(reason);
  }

  /** The server is gone. */
  loseConnection(reason: GearmanError): void {
    this.#lost.abort(reason);
  }

  /** Sends the one final packet; to some servers an exception alone is not final. */
  finish(outcome: JobOutcome): void {
    if (outcome.packet !== 'WORK_FAIL') this.#connection.send(outcome.packet, this.handle, outcome.data);
    const isException = outcome.packet === 'WORK_EXCEPTION';
    if (outcome.packet === 'WORK_FAIL' || (isException && this.#connection.wantsFailAfterException())) {
      this.#connection.send('WORK_FAIL', this.handle);
    }
    this.#isOver = true;
    this.#acknowledge?.(this.#connection.confirm());
  }

  async #send(name: 'WORK_DATA' | 'WORK_WARNING', data: string | Uint8Array): Promise<void> {
    checkPayload(data);
    checkPacketSize(name, [this.handle, data], this.#connection.maxPacketSize);
    if (this.#isOver) return;
    this.#connection.send(name, this.handle, data);
    await this.#connection.writable();
  }
}

/** What a handler may return: the payload of WORK_COMPLETE; nothing counts as an empty one. */
// biome-ignore lint/suspicious/noConfusingVoidType: a handler that returns nothing is of type `void`
export type JobResult = string | Uint8Array | void;

/**
 * Does one job. Its result is sent as WORK_COMPLETE; a {@link JobFailure} it throws as WORK_FAIL; anything else it
 * throws as WORK_EXCEPTION with the error's message, one line, no traceback.
 */
export type JobHandler = (job: WorkerJob) => Promise<JobResult> | JobResult;

/** The one final packet of a job. */
export type JobOutcome =
  | { readonly packet: 'WORK_COMPLETE'; readonly data: string | Uint8Array }
  | { readonly packet: 'WORK_FAIL'; readonly error: JobFailure }
  | { readonly packet: 'WORK_EXCEPTION'; readonly data: string; readonly error: unknown };

/** A line longer than this helps nobody. */
const MAX_EXCEPTION_LENGTH = 1000;

/** Runs a handler and reports its outcome. A result over the packet limit ends the job with an exception. */
export async function runHandler(handler: JobHandler, job: AssignedJob): Promise<JobOutcome> {
  try {
    const result: unknown = (await handler(job)) ?? '';
    if (typeof result !== 'string' && !types.isUint8Array(result)) {
      throw new TypeError(
        `the handler of ${job.function} returned ${typeof result}; it may return text or bytes`,
      );
    }
    job.checkResult(result);
    return { packet: 'WORK_COMPLETE', data: result };
  } catch (error) {
    if (error instanceof JobFailure) return { packet: 'WORK_FAIL', error };
    return { packet: 'WORK_EXCEPTION', data: firstLine(error), error };
  }
}

function firstLine(error: unknown): string {
  const text = error instanceof Error ? error.message || error.name : String(error);
  return (text.trim().split(/[\r\n]/, 1)[0] as string).slice(0, MAX_EXCEPTION_LENGTH);
}

/** An AbortController that costs nothing until somebody asks for its signal: most jobs never do. */
export class LazyAbort {
  #controller: AbortController | undefined;
  #aborted = false;
  #reason: unknown;

  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#aborted) this.#controller.abort(this.#reason);
    return this.#controller.signal;
  }

  /** Only the first reason counts. */
  abort(reason: unknown): void {
    if (this.#aborted) return;
    this.#aborted = true;
    this.#reason = reason;
    this.#controller?.abort(reason);
  }
}
