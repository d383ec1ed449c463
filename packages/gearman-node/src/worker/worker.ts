import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import { checkChoice, checkFunctionName, refuse } from '../argument-checks.ts';
import type { BackoffOptions } from '../connection/backoff.ts';
import { checkPeerOptions } from '../connection/check-options.ts';
import { Reconnector } from '../connection/reconnector.ts';
import { DEFAULT_TIMEOUT } from '../connection/reply-timer.ts';
import { formatAddress, type ServerAddress } from '../connection/server-address.ts';
import { GearmanError } from '../errors.ts';
import type { Logger } from '../logger.ts';
import { abortedError, unlessAborted } from '../unless-aborted.ts';
import { RunningJobs } from './running-jobs.ts';
import { Slots } from './slots.ts';
import { type ServerContext, WorkerConnection, type WorkerContext } from './worker-connection.ts';
import { checkWorkerFunction, type WorkerFunction } from './worker-function.ts';

/** How a {@link Worker} is set up. */
export interface WorkerOptions {
  /** The functions are offered to all of them at the same time. At least one. */
  readonly servers: readonly ServerAddress[];
  /** The name under which the admin command `workers` shows this worker. Default: none. */
  readonly clientId?: string | undefined;
  /** How many jobs run at a time, over all servers together. Default 1. */
  readonly concurrency?: number | undefined;
  readonly logger?: Logger | undefined;
  /**
   * Milliseconds until a connection must stand, and for which a server may leave a request unanswered before its
   * connection is given up. Default 30,000.
   */
  readonly timeout?: number | undefined;
  /**
   * The pauses between attempts to connect to one server. They grow until the server answers a request. Default: from
   * 100 up to 5,000 ms.
   */
  readonly reconnect?: BackoffOptions | undefined;
  /**
   * What becomes of a running job when its server is lost, while that server may give it to somebody else: `finish`
   * (default) lets the handler decide by {@link WorkerJob.connectionLost}, `abort` aborts the job's signal. Either
   * way the result of this run is dropped.
   */
  readonly onServerLost?: 'finish' | 'abort' | undefined;
  /**
   * Ask for jobs together with their reducers (GRAB_JOB_ALL). Python's job server does not answer that. Default false.
   */
  readonly takesReducers?: boolean | undefined;
  /**
   * Bytes of the largest packet that is taken or sent. A job whose payload or result is larger ends with an exception,
   * and no other. Default 64 MiB.
   */
  readonly maxPacketSize?: number | undefined;
}

/** The events of a {@link Worker}. */
export interface WorkerEvents {
  /** A server is connected and was told of the functions. */
  connect: [server: ServerAddress];
  /** A connection was lost; the worker connects again. */
  disconnect: [server: ServerAddress, error: GearmanError];
}

/**
 * Offers functions to job servers and runs the jobs that they assign. It connects at once, and again whenever a
 * connection is lost.
 */
export class Worker extends EventEmitter<WorkerEvents> implements AsyncDisposable {
  #functions = new Map<string, WorkerFunction>();
  #connections: WorkerConnection[] = [];
  readonly #context: WorkerContext;
  readonly #reconnectors: readonly Reconnector[];
  #turn = 0;
  #isClosing = false;
  #drained: Promise<void> | undefined;

  /** @throws GearmanError `invalid-argument` */
  constructor(options: WorkerOptions) {
    super();
    checkPeerOptions(options);
    const { servers, concurrency = 1, timeout = DEFAULT_TIMEOUT, logger, onServerLost = 'finish' } = options;
    checkChoice('onServerLost', onServerLost, ['finish', 'abort']);
    if (!Number.isInteger(concurrency) || concurrency < 1) {
      throw new GearmanError(
        'invalid-argument',
        `a concurrency of ${concurrency} is no whole number from 1 on`,
      );
    }
    this.#context = {
      functions: () => this.#functions,
      takesReducers: options.takesReducers ?? false,
      slots: new Slots(concurrency, () => this.#dispatch()),
      jobs: new RunningJobs(),
      clientId: options.clientId,
      timeout,
      onServerLost,
      maxPacketSize: options.maxPacketSize,
      logger,
      dispatch: () => this.#dispatch(),
    };
    this.#reconnectors = servers.map((server) => {
      const echo = { answers: undefined };
      return new Reconnector(server, {
        ...options.reconnect,
        timeout,
        serve: (socket, onAnswer) => this.#serve(server, socket, { echo, onAnswer }),
        onFailure: (error) => logger?.warn(error.message),
      });
    });
  }

  /** The functions that are declared now. */
  get functions(): ReadonlySet<string> {
    return new Set(this.#functions.keys());
  }

  /**
   * Declares the whole set of functions. Each server is told at once what was added. It is told what is gone as soon
   * as it cannot confuse a job: when none of that function runs and none is being assigned. A job that comes before
   * still runs.
   *
   * @throws GearmanError `invalid-argument`, with nothing changed, for a name that no server takes or a bad time limit
   */
  setFunctions(
    functions: Readonly<Record<string, WorkerFunction>> | ReadonlyMap<string, WorkerFunction>,
  ): void {
    if (typeof functions !== 'object' || functions === null) {
      refuse('set of functions', functions, 'give a Map or an object');
    }
    const wanted = functions instanceof Map ? functions : new Map(Object.entries(functions));
    this.#declare(
      wanted,
      [...this.#functions.keys()].filter((name) => !wanted.has(name)),
    );
  }

  /** Declares one more function, or another handler for it. @throws as {@link setFunctions} */
  add(name: string, declared: WorkerFunction): void {
    this.#declare(new Map([[name, declared]]), []);
  }

  /** Declares that a function is no longer offered. */
  remove(name: string): void {
    if (this.#functions.has(name)) this.#declare(NO_FUNCTIONS, [name]);
  }

  /**
   * Resolves once every server that is connected now has processed the functions that were added up to now. It does
   * not wait for those that are gone, so a handler may await it. A server that does not answer ECHO_REQ, as python's
   * does not, is given a second the first time, and trusted from then on.
   *
   * @throws GearmanError `aborted` when the signal aborts first
   */
  async registered(options: { readonly signal?: AbortSignal | undefined } = {}): Promise<void> {
    const confirmed = Promise.all(this.#connections.map((connection) => connection.confirm()));
    await unlessAborted(confirmed, options.signal);
  }

  /**
   * Drains: takes no further job, lets those that run end, sends their results, and hangs up. It may be called again,
   * for instance with a signal: an aborted signal aborts that of every job that runs. Their handlers are waited for.
   */
  async close(options: { readonly signal?: AbortSignal | undefined } = {}): Promise<void> {
    const { signal } = options;
    const abort = () => signal && this.#context.jobs.stopAll(abortedError(signal));
    if (signal?.aborted) abort();
    signal?.addEventListener('abort', abort);
    this.#isClosing = true;
    this.#drained ??= this.#drain();
    await this.#drained;
    signal?.removeEventListener('abort', abort);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #declare(added: ReadonlyMap<string, WorkerFunction>, removed: readonly string[]): void {
    if (this.#isClosing)
      throw new GearmanError('closed', 'the worker is being closed and offers nothing any more');
    for (const [name, declared] of added) {
      checkFunctionName(name);
      checkWorkerFunction(name, declared);
    }
    this.#apply(added, removed);
  }

  #apply(added: ReadonlyMap<string, WorkerFunction>, removed: readonly string[]): void {
    for (const connection of this.#connections) connection.drop(removed);
    for (const name of removed) this.#functions.delete(name);
    // The engine copies ten thousand at once in a fraction of the time that adding them one by one takes.
    if (this.#functions.size === 0) this.#functions = new Map(added);
    else for (const [name, declared] of added) this.#functions.set(name, declared);
    for (const connection of this.#connections) connection.offer(added.keys());
    this.#dispatch();
  }

  async #serve(server: ServerAddress, socket: Socket, context: ServerContext): Promise<void> {
    if (this.#isClosing) {
      socket.destroy();
      return;
    }
    const peer = formatAddress(server);
    const connection = new WorkerConnection(socket, peer, this.#context, context);
    this.#connections.push(connection);
    this.#context.logger?.info(`connected to the job server ${peer}`);
    this.emit('connect', server);
    this.#dispatch();
    const error = await connection.closed;
    this.#connections = this.#connections.filter((other) => other !== connection);
    if (this.#isClosing) return;
    this.#context.logger?.warn(error.message);
    this.emit('disconnect', server, error);
  }

  /** Gives each free slot to the next connection that has a use for it, in turn. */
  #dispatch(): void {
    const { slots } = this.#context;
    let passed = 0;
    while (!this.#isClosing && slots.free > 0 && passed < this.#connections.length) {
      const connection = this.#connections[this.#turn % this.#connections.length] as WorkerConnection;
      this.#turn += 1;
      if (connection.mayAsk) {
        connection.ask();
        passed = 0;
      } else {
        passed += 1;
      }
    }
  }

  async #drain(): Promise<void> {
    const stopped = Promise.all(this.#reconnectors.map((reconnector) => reconnector.stop()));
    this.#apply(NO_FUNCTIONS, [...this.#functions.keys()]);
    await this.#context.slots.allFree();
    await Promise.all(this.#connections.map((connection) => connection.hangUp()));
    await stopped;
  }
}

const NO_FUNCTIONS: ReadonlyMap<string, WorkerFunction> = new Map();
