import type { Socket } from 'node:net';
import { checkHandle, checkUnique } from '../argument-checks.ts';
import type { BackoffOptions } from '../connection/backoff.ts';
import { checkPeerOptions } from '../connection/check-options.ts';
import { openSocket } from '../connection/open-socket.ts';
import { PacedServer } from '../connection/paced-server.ts';
import { DEFAULT_TIMEOUT } from '../connection/reply-timer.ts';
import { formatAddress, type ServerAddress } from '../connection/server-address.ts';
import { ConnectionError, GearmanError } from '../errors.ts';
import type { Logger } from '../logger.ts';
import { ClientConnection, type JobStatus, type UniqueJobStatus } from './client-connection.ts';
import type { SubmitOptions } from './submission.ts';
import { type Job, SubmittedJob } from './submitted-job.ts';

/** How a {@link Client} is set up. */
export interface ClientOptions {
  /** Tried in this order: the first one that can be reached gets the jobs. At least one. */
  readonly servers: readonly ServerAddress[];
  /** The name under which the admin command `workers` shows this client. Default: none. */
  readonly clientId?: string | undefined;
  readonly logger?: Logger | undefined;
  /**
   * Milliseconds until a connection must stand, and for which a server may leave a request unanswered before its
   * connection is given up. Default 30,000. How long a job runs is not limited by it.
   */
  readonly timeout?: number | undefined;
  /**
   * The pauses between attempts to connect to one server. They grow until the server answers a request. Default: from
   * 100 up to 5,000 ms.
   */
  readonly reconnect?: BackoffOptions | undefined;
  /**
   * Bytes of the largest packet that is taken or sent. A job whose payload or result is larger fails with
   * `packet-too-large`, and no other. Default 64 MiB.
   */
  readonly maxPacketSize?: number | undefined;
}

/** What waits for a connection. */
interface Waiting {
  readonly start: (connection: ClientConnection) => void;
  readonly fail: (error: GearmanError) => void;
  /** Whether it outlasts a round in which no server could be reached. */
  readonly isPatient: () => boolean;
}

/**
 * Submits jobs to the first of several job servers that can be reached. It connects when there is something to send,
 * and tries each server once before it gives up.
 */
export class Client implements AsyncDisposable {
  readonly #options: ClientOptions;
  readonly #servers: readonly PacedServer[];
  readonly #stop = new AbortController();
  #connection: ClientConnection | undefined;
  #waiting: Waiting[] = [];
  #connecting: Promise<void> | undefined;

  /** @throws GearmanError `invalid-argument` */
  constructor(options: ClientOptions) {
    checkPeerOptions(options);
    this.#options = options;
    this.#servers = options.servers.map((address) => new PacedServer(address, options.reconnect));
  }

  /**
   * Submits a job. What goes wrong later rejects the job's promises.
   *
   * @param payload the job's argument; bytes must not change until the job's `handle` is there. Default: empty
   * @throws GearmanError `invalid-argument` for an argument of a wrong type, for a name or a key that no server takes,
   * or for options that exclude each other; `packet-too-large`; `closed`
   */
  submit(functionName: string, payload: string | Uint8Array = '', options: SubmitOptions = {}): Job {
    this.#checkOpen();
    const resubmit = (lost: SubmittedJob) => this.#send(lost);
    const job = new SubmittedJob(functionName, payload, options, resubmit, this.#options.maxPacketSize);
    this.#send(job);
    return job;
  }

  /**
   * Asks the server that is connected what it knows of a job.
   *
   * @throws GearmanError `invalid-argument`, `closed`; ConnectionError
   */
  async status(handle: string): Promise<JobStatus> {
    checkHandle(handle);
    return await this.#ask((connection) => connection.status(handle));
  }

  /**
   * Asks the server that is connected what it knows of the job with a unique key. Python's job server never answers:
   * its connection is then given up, and the jobs on it are lost.
   *
   * @throws as {@link status}
   */
  async statusByUnique(unique: string): Promise<UniqueJobStatus> {
    checkUnique(unique);
    return await this.#ask((connection) => connection.statusByUnique(unique));
  }

  /** Hangs up. Jobs in flight reject with `closed`; those of the foreground that have not begun do not run any more. */
  async close(): Promise<void> {
    const error = new GearmanError('closed', 'the client was closed');
    this.#stop.abort(error);
    await this.#connecting;
    for (const waiting of this.#waiting.splice(0)) waiting.fail(error);
    await this.#connection?.close(error);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #checkOpen(): void {
    if (this.#stop.signal.aborted) throw new GearmanError('closed', 'the client was closed; make a new one');
  }

  async #ask<T>(request: (connection: ClientConnection) => Promise<T>): Promise<T> {
    this.#checkOpen();
    return await new Promise<T>((resolve, reject) => {
      this.#whenConnected({
        start: (connection) => resolve(request(connection)),
        fail: reject,
        isPatient: () => false,
      });
    });
  }

  #send(job: SubmittedJob): void {
    this.#whenConnected({
      start: (connection) => connection.submit(job),
      fail: (error) => job.reject(error),
      isPatient: () => job.isResubmitted && !job.isSettled,
    });
  }

  #whenConnected(waiting: Waiting): void {
    if (this.#stop.signal.aborted) {
      waiting.fail(this.#stop.signal.reason);
    } else if (this.#connection?.isOpen) {
      start(waiting, this.#connection);
    } else {
      this.#waiting.push(waiting);
      this.#connecting ??= this.#connect();
    }
  }

  /** Tries the servers, round after round, until one can be reached or nobody waits any more. Never rejects. */
  async #connect(): Promise<void> {
    const { signal } = this.#stop;
    while (this.#waiting.length > 0 && !signal.aborted) {
      const error = await this.#tryAll();
      if (!error || signal.aborted) break;
      const all = this.#waiting;
      this.#waiting = all.filter((waiting) => waiting.isPatient());
      for (const waiting of all) if (!waiting.isPatient()) waiting.fail(error);
    }
    this.#connecting = undefined;
  }

  /** Tries each server once, those that back off last. Returns the error if none could be reached. */
  async #tryAll(): Promise<ConnectionError | undefined> {
    const { timeout = DEFAULT_TIMEOUT } = this.#options;
    const { signal } = this.#stop;
    const errors: ConnectionError[] = [];
    for (const server of this.#servers.toSorted((a, b) => a.pause - b.pause)) {
      await server.ready(signal);
      try {
        const socket = await openSocket(server.address, { timeout, signal });
        this.#serve(server, socket);
        return undefined;
      } catch (error) {
        server.lost();
        errors.push(error as ConnectionError);
      }
    }
    if (errors.length === 1) return errors[0];
    const message = errors.map((error) => error.message).join('; ');
    return new ConnectionError('connect-failed', message, { cause: new AggregateError(errors) });
  }

  #serve(server: PacedServer, socket: Socket): void {
    const { clientId, maxPacketSize, timeout = DEFAULT_TIMEOUT, logger } = this.#options;
    const connection = new ClientConnection(socket, {
      peer: formatAddress(server.address),
      clientId,
      timeout,
      maxPacketSize,
      onAnswer: () => server.answered(),
      onClose: (error) => {
        server.lost();
        if (error.code !== 'closed') logger?.warn(error.message);
      },
    });
    this.#connection = connection;
    for (const waiting of this.#waiting.splice(0)) start(waiting, connection);
  }
}

/** A request that cannot be sent fails alone; the others that wait for the connection are sent. */
function start(waiting: Waiting, connection: ClientConnection): void {
  try {
    waiting.start(connection);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    waiting.fail(
      error instanceof GearmanError ? error : new GearmanError('internal', reason, { cause: error }),
    );
  }
}
