import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { checkChoice, checkFunctionName, checkNames, type OptionNames, refuse } from '../argument-checks.ts';
import { openSocket } from '../connection/open-socket.ts';
import { PacedServer } from '../connection/paced-server.ts';
import { checkPeerOptions, type PeerOptions } from '../connection/peer-options.ts';
import { DEFAULT_TIMEOUT } from '../connection/reply-timer.ts';
import { formatAddress, type ServerAddress } from '../connection/server-address.ts';
import { type ConnectionError, GearmanError } from '../errors.ts';
import { abortedError, unlessAborted } from '../unless-aborted.ts';
import { BATCH } from './registration-queue.ts';
import { ServerKnowledge } from './server-knowledge.ts';
import { Slots } from './slots.ts';
import { WorkerConnection } from './worker-connection.ts';
import { checkWorkerFunction, type WorkerFunction } from './worker-function.ts';
import type { WorkerContext, WorkerOptions } from './worker-options.ts';

const OPTIONS: OptionNames<Omit<WorkerOptions, keyof PeerOptions>> = {
  concurrency: true,
  logsFailures: true,
  onServerLost: true,
  takesReducers: true,
};

const WAIT_OPTIONS = { signal: true } as const;

/** The events of a {@link Worker}. */
export interface WorkerEvents {
  /** A server is connected, and the functions are being registered. */
  connect: [server: ServerAddress];
  /** A connection was lost; the worker reconnects. */
  disconnect: [server: ServerAddress, error: GearmanError];
}

/**
 * Registers functions with job servers and runs the jobs that they assign. It connects immediately, and reconnects
 * whenever a connection is lost.
 */
export class Worker extends EventEmitter<WorkerEvents> implements AsyncDisposable {
  #functions = new Map<string, WorkerFunction>();
  #connections: WorkerConnection[] = [];
  readonly #context: WorkerContext;
  readonly #stop = new AbortController();
  /** Resolves when the worker has stopped connecting, and its connections have closed. */
  readonly #disconnected: Promise<unknown>;
  #turn = 0;
  #isClosing = false;
  #drained: Promise<void> | undefined;

  /** @throws GearmanError `invalid-argument` */
  constructor(options: WorkerOptions) {
    super();
    checkPeerOptions('the options of a Worker', options, OPTIONS);
    const { servers, concurrency = 1, timeout = DEFAULT_TIMEOUT, onServerLost = 'finish' } = options;
    checkChoice('onServerLost', onServerLost, ['finish', 'abort']);
    if (!Number.isInteger(concurrency) || concurrency < 1) {
      throw new GearmanError(
        'invalid-argument',
        `a concurrency of ${concurrency} is invalid; give a whole number of at least 1`,
      );
    }
    this.#context = {
      ...options,
      timeout,
      functions: () => this.#functions,
      slots: new Slots(concurrency, () => this.#dispatch()),
      jobs: new Set(),
      stopReason: undefined,
      dispatch: () => this.#dispatch(),
    };
    const paced = servers.map((address) => new PacedServer(address, options.reconnect));
    this.#disconnected = Promise.all(paced.map((server) => this.#keepConnected(server)));
  }

  /** The declared functions. */
  get functions(): ReadonlySet<string> {
    return new Set(this.#functions.keys());
  }

  /**
   * Declares the complete set of functions. Added functions are registered immediately. Removed functions are
   * deregistered when none of their jobs is running and no grab is outstanding. A job that is assigned before then
   * still runs.
   *
   * @throws GearmanError `invalid-argument`, with nothing changed, for an invalid name or time limit
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

  /** Adds a function, or replaces its handler. @throws like {@link setFunctions} */
  add(name: string, declared: WorkerFunction): void {
    this.#declare(new Map([[name, declared]]), []);
  }

  /** Removes a function. */
  remove(name: string): void {
    if (this.#functions.has(name)) this.#declare(NO_FUNCTIONS, [name]);
  }

  /**
   * Resolves once every connected server has processed the functions that were added so far. It does not wait for
   * removed functions, so a handler may await it. It waits one second for a server that does not reply to ECHO_REQ,
   * such as Python's, and afterwards not at all.
   *
   * @throws GearmanError `aborted` when the signal aborts first
   */
  async registered(options: { readonly signal?: AbortSignal | undefined } = {}): Promise<void> {
    checkNames('the options of registered', options, WAIT_OPTIONS);
    const confirmed = Promise.all(this.#connections.map((connection) => connection.confirm()));
    await unlessAborted(confirmed, options.signal);
  }

  /**
   * Drains the worker: grabs no further jobs, waits for the running ones, sends their results, and closes the
   * connections. A second call may pass a signal, which aborts the signals of all running jobs. It always waits for
   * their handlers.
   */
  async close(options: { readonly signal?: AbortSignal | undefined } = {}): Promise<void> {
    checkNames('the options of close', options, WAIT_OPTIONS);
    const { signal } = options;
    const abort = () => signal && this.#stopJobs(abortedError(signal));
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
      throw new GearmanError('closed', 'the worker is closing and cannot change its functions');
    for (const [name, declared] of added) {
      checkFunctionName(name);
      checkWorkerFunction(name, declared);
    }
    this.#apply(added, removed);
  }

  #apply(added: ReadonlyMap<string, WorkerFunction>, removed: readonly string[]): void {
    for (const connection of this.#connections) connection.drop(removed);
    for (const name of removed) this.#functions.delete(name);
    // Copying ten thousand functions at once takes a fraction of the time that adding them one by one takes.
    if (this.#functions.size === 0) this.#functions = new Map(added);
    else for (const [name, declared] of added) this.#functions.set(name, declared);
    for (const connection of this.#connections) connection.offer(added.keys());
    this.#dispatch();
  }

  /** Connects to a server, and again, with growing pauses, whenever the connection is lost. Never rejects. */
  async #keepConnected(server: PacedServer): Promise<void> {
    const { signal } = this.#stop;
    const { timeout, logger } = this.#context;
    const known = new ServerKnowledge(timeout);
    while (!signal.aborted) {
      const socket = await openSocket(server.address, { timeout, signal }).catch((error: ConnectionError) => {
        if (!signal.aborted) logger?.warn(error.message);
      });
      if (socket) await this.#serve(server, socket, known);
      server.lost();
      await server.ready(signal);
    }
  }

  async #serve(server: PacedServer, socket: Socket, known: ServerKnowledge): Promise<void> {
    if (this.#isClosing) {
      socket.destroy();
      return;
    }
    const connection = new WorkerConnection(socket, server, known, this.#context);
    this.#connections.push(connection);
    this.#context.logger?.info(`connected to the job server ${formatAddress(server.address)}`);
    this.emit('connect', server.address);
    this.#dispatch();
    const error = await connection.closed;
    this.#connections = this.#connections.filter((other) => other !== connection);
    if (this.#isClosing) return;
    this.#context.logger?.warn(error.message);
    this.emit('disconnect', server.address, error);
  }

  #stopJobs(reason: GearmanError): void {
    this.#context.stopReason = reason;
    for (const job of this.#context.jobs) job.stop(reason);
  }

  /** Gives each free slot to the next connection that can use it, in turn. */
  #dispatch(): void {
    const { slots } = this.#context;
    let passed = 0;
    while (!this.#isClosing && slots.free > 0 && passed < this.#connections.length) {
      const connection = this.#connections[this.#turn % this.#connections.length] as WorkerConnection;
      this.#turn += 1;
      if (connection.canGrab) {
        connection.grab();
        passed = 0;
      } else {
        passed += 1;
      }
    }
  }

  async #drain(): Promise<void> {
    this.#stop.abort(new Error('closing'));
    const { slots } = this.#context;
    const names = [...this.#functions.keys()];
    // Servers drop the functions of a closed connection. They are deregistered here only while a job delays the close.
    while (names.length > 0 && !slots.areAllFree) {
      this.#apply(NO_FUNCTIONS, names.splice(-BATCH));
      await nextTurn();
    }
    await slots.allFree();
    await Promise.all(this.#connections.map((connection) => connection.close()));
    await this.#disconnected;
  }
}

const NO_FUNCTIONS: ReadonlyMap<string, WorkerFunction> = new Map();
