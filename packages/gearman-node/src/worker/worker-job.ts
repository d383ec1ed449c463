import { types } from 'node:util';
import { checkCount, checkPayload } from '../argument-checks.ts';
import { checkPacketSize } from '../codec/packet-size.ts';
import { GearmanError, WorkFailError } from '../errors.ts';
import type { Logger } from '../logger.ts';
import type { ArgumentValues, PacketName } from '../packets.ts';

/** A job that a server assigned to this worker; the argument of a handler. */
export interface WorkerJob {
  /** The server's identifier of the job, for instance `H:host:42`. */
  readonly handle: string;
  readonly function: string;
  /** The unique key, for coalescing; empty for none. */
  readonly unique: string;
  /** The reducer that the client gave; empty unless the worker has `takesReducers`. */
  readonly reducer: string;
  /** The argument of the job. It may be part of a larger buffer: copy data that you keep after the job. */
  readonly payload: Buffer;
  /** Aborted when the job must stop; the reason is a GearmanError. */
  readonly signal: AbortSignal;
  /**
   * Aborted when the connection to the job's server is lost. gearmand then gives the job to another worker, and the
   * result of this run is discarded.
   */
  readonly connectionLost: AbortSignal;
  /**
   * Resolves once the server has processed the final packet of this job, or when the server is lost or does not reply
   * to ECHO_REQ. Never rejects. Data that is kept in case the job runs again can then be deleted.
   */
  readonly acknowledged: Promise<void>;

  /**
   * Reports progress to the clients (WORK_STATUS), in any unit. Does nothing after the end of the job.
   *
   * @throws GearmanError `invalid-argument` unless both are non-negative integers
   */
  sendStatus(numerator: number, denominator: number): void;
  /**
   * Sends a part of the result (WORK_DATA). Resolves when the connection accepts more data.
   *
   * @throws GearmanError `invalid-argument` unless the data is text or bytes, `packet-too-large`
   */
  sendData(data: string | Uint8Array): Promise<void>;
  /** Sends a warning (WORK_WARNING). Resolves when the connection accepts more data. @throws like {@link sendData} */
  sendWarning(data: string | Uint8Array): Promise<void>;
}

/** The connection of a job, as the job uses it. */
export interface JobConnection {
  send<N extends PacketName>(name: N, ...args: ArgumentValues<N>): void;
  /** Resolves when the connection accepts more data. */
  writable(): Promise<void>;
  /** Resolves when the server has processed all sent packets, if it confirms that. */
  confirm(): Promise<void>;
  /** Returns whether the server expects WORK_FAIL after WORK_EXCEPTION. */
  wantsFailAfterException(): boolean;
  /** Maximum size of a sent packet in bytes. Default 64 MiB. */
  readonly maxPacketSize?: number | undefined;
}

/** The contents of JOB_ASSIGN. */
type Assignment = Pick<WorkerJob, 'handle' | 'function' | 'unique' | 'reducer' | 'payload'>;

/** A {@link WorkerJob} with the methods that its connection uses. */
export class AssignedJob implements WorkerJob {
  readonly handle: string;
  readonly function: string;
  readonly unique: string;
  readonly reducer: string;
  readonly payload: Buffer;
  readonly connection: JobConnection;
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
    this.connection = connection;
  }

  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  get connectionLost(): AbortSignal {
    return this.#lost.signal;
  }

  get acknowledged(): Promise<void> {
    this.#acknowledged ??= this.#isOver
      ? this.connection.confirm()
      : new Promise((resolve) => {
          this.#acknowledge = resolve;
        });
    return this.#acknowledged;
  }

  sendStatus(numerator: number, denominator: number): void {
    checkCount(numerator);
    checkCount(denominator);
    if (!this.#isOver) this.connection.send('WORK_STATUS', this.handle, numerator, denominator);
  }

  async sendData(data: string | Uint8Array): Promise<void> {
    await this.#send('WORK_DATA', data);
  }

  async sendWarning(data: string | Uint8Array): Promise<void> {
    await this.#send('WORK_WARNING', data);
  }

  /** @throws GearmanError `packet-too-large` */
  checkResult(data: string | Uint8Array): void {
    checkPacketSize('WORK_COMPLETE', [this.handle, data], this.connection.maxPacketSize);
  }

  /** Aborts {@link signal}. */
  stop(reason: GearmanError): void {
    this.#stop.abort(reason);
  }

  /** Aborts {@link signal} after the time limit, given in milliseconds. */
  timeOut(limit: number): void {
    const message = `job ${this.handle} of ${this.function} did not end within ${limit} ms`;
    this.stop(new GearmanError('job-timeout', message));
  }

  /** Aborts {@link connectionLost}. */
  loseConnection(reason: GearmanError): void {
    this.#lost.abort(reason);
  }

  /** Sends the final packet, followed by WORK_FAIL after an exception if the server expects it. */
  finish(outcome: JobOutcome): void {
    if (outcome.packet !== 'WORK_FAIL') this.connection.send(outcome.packet, this.handle, outcome.data);
    const isException = outcome.packet === 'WORK_EXCEPTION';
    if (outcome.packet === 'WORK_FAIL' || (isException && this.connection.wantsFailAfterException())) {
      this.connection.send('WORK_FAIL', this.handle);
    }
    this.#isOver = true;
    this.#acknowledge?.(this.connection.confirm());
  }

  async #send(name: 'WORK_DATA' | 'WORK_WARNING', data: string | Uint8Array): Promise<void> {
    checkPayload(data);
    checkPacketSize(name, [this.handle, data], this.connection.maxPacketSize);
    if (this.#isOver) return;
    this.connection.send(name, this.handle, data);
    await this.connection.writable();
  }
}

/** Return value of a handler: the payload of WORK_COMPLETE, or undefined for an empty payload. */
// biome-ignore lint/suspicious/noConfusingVoidType: a handler that returns nothing is of type `void`
export type JobResult = string | Uint8Array | void;

/**
 * Runs one job. The result is sent as WORK_COMPLETE, a thrown {@link WorkFailError} as WORK_FAIL, and any other thrown
 * error as WORK_EXCEPTION with the first line of its message.
 */
export type JobHandler = (job: WorkerJob) => Promise<JobResult> | JobResult;

/** The final packet of a job. */
export type JobOutcome =
  | { readonly packet: 'WORK_COMPLETE'; readonly data: string | Uint8Array }
  | { readonly packet: 'WORK_FAIL'; readonly error: WorkFailError }
  | { readonly packet: 'WORK_EXCEPTION'; readonly data: string; readonly error: unknown };

/** Maximum length of the line in WORK_EXCEPTION. */
const MAX_EXCEPTION_LENGTH = 1000;

/**
 * Runs a handler. Returns the outcome at once if the handler returned a result, and a promise if it returned one. A
 * result over the packet limit ends the job with an exception.
 */
export function runHandler(handler: JobHandler, job: AssignedJob): JobOutcome | Promise<JobOutcome> {
  try {
    const result = handler(job);
    // Promises of other libraries are also awaited.
    const isThere = result === undefined || typeof result === 'string' || types.isUint8Array(result);
    return isThere ? completion(result, job) : awaitResult(result, job);
  } catch (error) {
    return failure(error);
  }
}

async function awaitResult(result: Promise<JobResult>, job: AssignedJob): Promise<JobOutcome> {
  try {
    return completion(await result, job);
  } catch (error) {
    return failure(error);
  }
}

function completion(result: unknown, job: AssignedJob): JobOutcome {
  const data = result ?? '';
  if (typeof data !== 'string' && !types.isUint8Array(data)) {
    throw new TypeError(
      `the handler of ${job.function} returned ${typeof data}; it may return text or bytes`,
    );
  }
  job.checkResult(data);
  return { packet: 'WORK_COMPLETE', data };
}

function failure(error: unknown): JobOutcome {
  if (error instanceof WorkFailError) return { packet: 'WORK_FAIL', error };
  return { packet: 'WORK_EXCEPTION', data: firstLine(error), error };
}

function firstLine(error: unknown): string {
  const text = error instanceof Error ? error.message || error.name : String(error);
  return (text.trim().split(/[\r\n]/, 1)[0] as string).slice(0, MAX_EXCEPTION_LENGTH);
}

/** An AbortController that is created on first use of its signal: most jobs never use it. */
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

/**
 * Logs the end of a job that failed, or whose result its server does not get.
 *
 * @param lostPeer server whose connection was lost meanwhile
 */
export function logOutcome(
  logger: Logger | undefined,
  job: AssignedJob,
  outcome: JobOutcome,
  { lostPeer, logsFailures }: { readonly lostPeer: string | undefined; readonly logsFailures: boolean },
): void {
  const name = `job ${job.handle} of ${job.function}`;
  if (lostPeer !== undefined) {
    logger?.warn(
      `${name} ended after the connection to ${lostPeer} was lost; its ${outcome.packet} is discarded`,
    );
  } else if (logsFailures && outcome.packet === 'WORK_FAIL') {
    logger?.warn(`${name} failed: ${outcome.error.message}`);
  } else if (logsFailures && outcome.packet === 'WORK_EXCEPTION') {
    logger?.error(`${name} ended in an exception: ${outcome.data}`, { error: outcome.error });
  }
}
