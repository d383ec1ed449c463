import { checkHandle, checkUnique } from '../argument-checks.ts';
import type { Packet } from '../codec/packet.ts';
import { openSocket } from '../connection/open-socket.ts';
import { PacedServer } from '../connection/paced-server.ts';
import { checkPeerOptions, type PeerOptions } from '../connection/peer-options.ts';
import { DEFAULT_TIMEOUT } from '../connection/reply-timer.ts';
import type { ServerAddress } from '../connection/server-address.ts';
import { ConnectionError, GearmanError } from '../errors.ts';
import { ClientConnection } from './client-connection.ts';
import type { SubmitOptions } from './submission.ts';
import { type Job, SubmittedJob } from './submitted-job.ts';

/** Options of a {@link Client}. */
export interface ClientOptions extends PeerOptions {
  /** Tried in this order: the first reachable one gets the jobs. At least one. */
  readonly servers: readonly ServerAddress[];
}

/** Status of a job. */
export interface JobStatus {
  /** True if the server has the job, queued or running. */
  readonly known: boolean;
  readonly running: boolean;
  /** The last progress that the worker reported, in the worker's unit. */
  readonly numerator: number;
  readonly denominator: number;
}

/** Status of the job with a unique key. */
export interface UniqueJobStatus extends JobStatus {
  /** Number of clients that wait for its result. */
  readonly clients: number;
}

/** A request that waits for a connection. */
interface Waiting {
  readonly start: (connection: ClientConnection) => void;
  readonly fail: (error: GearmanError) => void;
  /** The request keeps waiting even if no server is reachable. */
  readonly keepsWaiting: () => boolean;
}

/**
 * Submits jobs to the first reachable job server. It connects on demand, and tries each server once before a request
 * fails.
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
    checkPeerOptions('the options of a Client', options, {});
    this.#options = options;
    this.#servers = options.servers.map((address) => new PacedServer(address, options.reconnect));
  }

  /**
   * Submits a job. Later errors reject the job's promises.
   *
   * @param payload the job's argument; bytes must not be modified until `handle` has resolved. Default: empty
   * @throws GearmanError `invalid-argument` for an argument of a wrong type, an invalid name or key, or options that
   * exclude each other; `packet-too-large`; `closed`
   */
  submit(functionName: string, payload: string | Uint8Array = '', options: SubmitOptions = {}): Job {
    this.#checkOpen();
    const resubmit = (lost: SubmittedJob) => this.#send(lost);
    const job = new SubmittedJob(functionName, payload, options, resubmit, this.#options.maxPacketSize);
    this.#send(job);
    return job;
  }

  /**
   * Requests the status of a job from the connected server.
   *
   * @throws GearmanError `invalid-argument`, `closed`; ConnectionError
   */
  async status(handle: string): Promise<JobStatus> {
    checkHandle(handle);
    return statusIn(await this.#ask((connection) => connection.ask('GET_STATUS', 'STATUS_RES', handle)));
  }

  /**
   * Requests the status of the job with a unique key from the connected server. The Python server never replies: the
   * connection is then closed, and its jobs in flight are lost.
   *
   * @throws like {@link status}
   */
  async statusByUnique(unique: string): Promise<UniqueJobStatus> {
    checkUnique(unique);
    const packet = await this.#ask((connection) =>
      connection.ask('GET_STATUS_UNIQUE', 'STATUS_RES_UNIQUE', unique),
    );
    return { ...statusIn(packet), clients: packet.number('clients') };
  }

  /** Closes the connection. Jobs in flight reject with `closed`; the server drops waiting foreground jobs. */
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
    if (this.#stop.signal.aborted)
      throw new GearmanError('closed', 'the client was closed; create a new one');
  }

  async #ask(request: (connection: ClientConnection) => Promise<Packet>): Promise<Packet> {
    this.#checkOpen();
    return await new Promise((resolve, reject) => {
      this.#whenConnected({
        start: (connection) => resolve(request(connection)),
        fail: reject,
        keepsWaiting: () => false,
      });
    });
  }

  #send(job: SubmittedJob): void {
    this.#whenConnected({
      start: (connection) => connection.submit(job),
      fail: (error) => job.reject(error),
      keepsWaiting: () => job.isResubmitted && !job.isSettled,
    });
  }

  #whenConnected(waiting: Waiting): void {
    if (this.#stop.signal.aborted) {
      waiting.fail(this.#stop.signal.reason);
    } else if (this.#connection?.isOpen) {
      startOn(waiting, this.#connection);
    } else {
      this.#waiting.push(waiting);
      this.#connecting ??= this.#connect();
    }
  }

  /** Tries the servers in rounds until one is reachable or no request is waiting. Never rejects. */
  async #connect(): Promise<void> {
    const { signal } = this.#stop;
    while (this.#waiting.length > 0 && !signal.aborted) {
      const error = await this.#tryAll();
      if (!error || signal.aborted) break;
      const all = this.#waiting;
      this.#waiting = all.filter((waiting) => waiting.keepsWaiting());
      for (const waiting of all) if (!waiting.keepsWaiting()) waiting.fail(error);
    }
    this.#connecting = undefined;
  }

  /** Tries each server once, starting with those whose pause is over. Returns the error if none is reachable. */
  async #tryAll(): Promise<ConnectionError | undefined> {
    const { timeout = DEFAULT_TIMEOUT } = this.#options;
    const { signal } = this.#stop;
    const errors: ConnectionError[] = [];
    for (const server of this.#servers.toSorted((a, b) => a.pause - b.pause)) {
      await server.ready(signal);
      try {
        const socket = await openSocket(server.address, { timeout, signal });
        this.#connection = new ClientConnection(socket, server, this.#options);
        for (const waiting of this.#waiting.splice(0)) startOn(waiting, this.#connection);
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
}

/** Sends a request. A request that cannot be sent does not affect the others. */
function startOn(waiting: Waiting, connection: ClientConnection): void {
  try {
    waiting.start(connection);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    waiting.fail(
      error instanceof GearmanError ? error : new GearmanError('internal', reason, { cause: error }),
    );
  }
}

function statusIn(packet: Packet): JobStatus {
  return {
    known: packet.number('known') !== 0,
    running: packet.number('running') !== 0,
    numerator: packet.number('numerator'),
    denominator: packet.number('denominator'),
  };
}
