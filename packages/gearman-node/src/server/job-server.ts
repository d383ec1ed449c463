import type { Socket } from 'node:net';
import os from 'node:os';
import type { SecureContextOptions, TlsOptions } from 'node:tls';
import { checkNames, checkRange, type OptionNames } from '../argument-checks.ts';
import type { Packet } from '../codec/packet.ts';
import { tooLarge } from '../codec/packet-size.ts';
import { FlushGroup } from '../connection/flush-group.ts';
import { checkPacketLimit } from '../connection/peer-options.ts';
import { DEFAULT_PORT } from '../connection/server-address.ts';
import { GearmanError, ProtocolError } from '../errors.ts';
import { Journal } from '../journal/journal.ts';
import type { Logger } from '../logger.ts';
import { PACKET_TYPES } from '../packets.ts';
import { unlessAborted } from '../unless-aborted.ts';
import { AccessList, type AccessRight, type AccessRules } from './access-list.ts';
import { adminReply } from './admin-replies.ts';
import { CLIENT_PACKETS, restoreJobs } from './client-packets.ts';
import { JobQueue } from './job-queue.ts';
import { type ListenAddress, Listener } from './listener.ts';
import type { Peer, ServerJob } from './queue-model.ts';
import { Backlogs, ServerConnection } from './server-connection.ts';
import type { PacketHandler, PacketHandlers, ServerState } from './server-state.ts';
import { failOversized, WORKER_PACKETS } from './worker-packets.ts';

/** Time for a woken worker to grab its job, in milliseconds, before all sleepers are woken. */
const WAKE_LIMIT = 100;

const DEFAULT_MAX_OUTPUT_BUFFER = 64 * 1024 * 1024;
const DEFAULT_MAX_TOTAL_OUTPUT = 256 * 1024 * 1024;

/** Keeps handles below 64 bytes. */
const MAX_HOST_NAME_LENGTH = 40;

const HANDLERS: PacketHandlers = { ...CLIENT_PACKETS, ...WORKER_PACKETS };

/** Handlers by number of the packet type, for faster access than by name. */
const HANDLERS_BY_NUMBER = PACKET_TYPES.map((type) => type && HANDLERS[type.name]);

/** Options of a {@link JobServer}. */
export interface JobServerOptions {
  readonly logger?: Logger | undefined;
  /**
   * Accept TLS connections only, with these options of `node:tls`. `requestCert: true` rejects clients without a
   * certificate of `ca`. Default of `handshakeTimeout`: 10 s.
   */
  readonly tls?: TlsOptions | undefined;
  /**
   * Rights to submit, register and administer functions, by certificate; requires `tls` with `requestCert`. A denied
   * request gets the error code `ACCESS_DENIED`. Default: all peers have all rights.
   */
  readonly access?: AccessRules | undefined;
  /**
   * A directory for background jobs: each job is on disk before its client gets JOB_CREATED, and is restored after a
   * crash or a {@link JobServer.close}. A job that was running then runs again. Only one server at a time may use a
   * directory. Default: jobs are kept only in memory.
   */
  readonly journal?: string | undefined;
  /**
   * Maximum number of connections. Further ones are closed and logged. Default: the limit of file descriptors, less
   * some for other files.
   */
  readonly maxConnections?: number | undefined;
  /**
   * Number of workers that may lose a job or exceed its time limit before it fails, like gearmand's `--job-retries`.
   * Default: no limit.
   */
  readonly maxAttempts?: number | undefined;
  /**
   * Maximum size of a packet in bytes. A larger submission is rejected, and a larger packet of a worker fails its job.
   * Default 64 MiB.
   */
  readonly maxPacketSize?: number | undefined;
  /** Bytes buffered for a peer that does not read, before it is disconnected. Default 64 MiB. */
  readonly maxOutputBuffer?: number | undefined;
  /**
   * Bytes buffered for all slow peers together. Above it, the peer with the largest backlog is disconnected. Default
   * 256 MiB.
   */
  readonly maxTotalOutput?: number | undefined;
  /**
   * True to send WORK_EXCEPTION to clients that did not request it, like gearmand's `--exceptions`. Default false.
   */
  readonly exceptions?: boolean | undefined;
  /**
   * Called for the admin commands `shutdown` and `shutdown graceful`. It should {@link JobServer.drain} and close the
   * server. Default: the commands are unknown, as in gearmand.
   */
  readonly onShutdown?: ((graceful: boolean) => void) | undefined;
  /**
   * Called when the admin command `cancel job` ends a job. Gearman has no packet that would stop the worker of a running
   * job. Returns the text of a WORK_WARNING to the job's clients. Default: none, as in gearmand.
   */
  readonly onCancel?: ((job: CancelledJob) => string | undefined) | undefined;
}

const OPTIONS: OptionNames<JobServerOptions> = {
  logger: true,
  tls: true,
  access: true,
  journal: true,
  maxConnections: true,
  maxAttempts: true,
  maxPacketSize: true,
  maxOutputBuffer: true,
  maxTotalOutput: true,
  exceptions: true,
  onShutdown: true,
  onCancel: true,
};

export interface CancelledJob {
  readonly handle: string;
  readonly function: string;
  /** Unique key; empty for none. */
  readonly unique: string;
  readonly payload: Buffer;
  /** True if a worker runs it. */
  readonly isRunning: boolean;
}

/**
 * An embedded job server with gearmand's protocol, admin text protocol included. It behaves like gearmand 2, without
 * these bugs: a worker that removes a function loses its running job; a background job is lost with the client of a
 * foreground job with the same key; an unused function stays.
 */
export class JobServer implements AsyncDisposable {
  readonly #options: JobServerOptions;
  readonly #listener: Listener;
  #access: AccessList | undefined;
  readonly #connections = new Set<ServerConnection>();
  readonly #group = new FlushGroup();
  readonly #backlogs: Backlogs;
  readonly #state: ServerState & { journal: Journal | undefined };
  #connectionCount = 0;
  #wakeTimer: NodeJS.Timeout | undefined;

  /** @throws GearmanError `invalid-argument` for `access` without clients' certificates, and for unusable `tls` */
  constructor(options: JobServerOptions = {}) {
    checkNames('the options of a JobServer', options, OPTIONS);
    checkPacketLimit(options.maxPacketSize);
    checkRange('maxOutputBuffer', options.maxOutputBuffer, 0, Number.POSITIVE_INFINITY);
    checkRange('maxTotalOutput', options.maxTotalOutput, 0, Number.POSITIVE_INFINITY);
    this.#options = options;
    this.#backlogs = new Backlogs(options.maxTotalOutput ?? DEFAULT_MAX_TOTAL_OUTPUT);
    const { logger, tls, access, maxConnections, maxAttempts, onShutdown, onCancel } = options;
    if (access) this.setAccess(access);
    const onConnection = (socket: Socket) => this.#onConnection(socket);
    this.#listener = new Listener({ logger, tls, maxConnections, onConnection });
    this.#state = {
      queue: new JobQueue({
        handlePrefix: `H:${os.hostname().slice(0, MAX_HOST_NAME_LENGTH)}`,
        maxAttempts,
        onWake: (worker) => this.#wake(worker),
        onGiveUp: (job) => this.#giveUp(job),
        later: setImmediate,
        onFinish: (job) => {
          job.timer?.stop();
          this.#state.journal?.remove(job.handle);
        },
      }),
      journal: undefined,
      connections: this.#connections,
      permits: (from, right, functionName) => this.#permits(from, right, functionName),
      onShutdown,
      onCancel: (job) => onCancel?.(cancelledJob(job)),
    };
  }

  /** Address of the server; undefined before {@link listen} and after {@link close}. */
  get address(): ListenAddress | undefined {
    return this.#listener.address;
  }

  /**
   * Starts listening.
   *
   * @param port 0 for a free port
   * @throws GearmanError `listen-failed`, for instance because the port is in use, or because the server already
   * listens; `invalid-argument` for an invalid port; `journal-failed`
   */
  async listen(port: number = DEFAULT_PORT, host = '127.0.0.1'): Promise<ListenAddress> {
    const { journal, logger } = this.#options;
    if (journal !== undefined && !this.#state.journal) {
      this.#state.journal = await Journal.open(journal, logger);
      restoreJobs(this.#state.journal, this.#state);
    }
    return await this.#listener.listen(port, host);
  }

  /**
   * Uses a renewed certificate and key, or other authorities, for new connections.
   *
   * @throws GearmanError `invalid-argument`, with nothing changed, for an invalid certificate or key, or without TLS
   */
  setSecureContext(options: SecureContextOptions): void {
    this.#listener.setSecureContext(options);
  }

  /**
   * Replaces the access rules, also for existing connections. Submitted jobs and registered functions stay.
   *
   * @throws GearmanError `invalid-argument` without clients' certificates
   */
  setAccess(access: AccessRules): void {
    if (!this.#options.tls?.requestCert) {
      throw new GearmanError(
        'invalid-argument',
        'access rules require client certificates; give the job server the option tls, with requestCert and ca',
      );
    }
    this.#access = new AccessList(access);
  }

  /**
   * Accepts no further connections and jobs, assigns no further jobs, and waits for the running ones. {@link close}
   * must be called afterwards.
   *
   * @throws GearmanError `aborted`
   */
  async drain(signal?: AbortSignal): Promise<void> {
    void this.#listener.stop(); // never rejects
    await unlessAborted(this.#state.queue.drain(), signal);
  }

  /** Stops listening and closes all connections. Jobs that are not in a journal are lost. */
  async close(): Promise<void> {
    clearTimeout(this.#wakeTimer);
    for (const job of this.#state.queue.jobs) job.timer?.stop();
    const stopped = this.#listener.stop();
    await this.#state.journal?.close(); // precedes the connections: a disconnected worker must not end its job
    await Promise.all(Array.from(this.#connections, (connection) => connection.close()));
    this.#listener.destroySockets();
    await stopped;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #onConnection(socket: Socket): void {
    this.#connectionCount += 1;
    const connection: ServerConnection = new ServerConnection(socket, {
      number: this.#connectionCount,
      group: this.#group,
      maxPacketSize: this.#options.maxPacketSize,
      maxOutputBuffer: this.#options.maxOutputBuffer ?? DEFAULT_MAX_OUTPUT_BUFFER,
      wantsExceptions: this.#options.exceptions ?? false,
      onBacklog: (size) => this.#backlogs.add(connection, size),
      onPacket: (packet) => this.#onPacket(connection, packet),
      onOversized: (packet, size) => this.#onOversized(connection, packet, size),
      onLine: (line) => {
        const command = line.toString('latin1');
        connection.reply(() => adminReply(command, connection, this.#state));
      },
      onClose: (error) => this.#onClose(connection, error),
    });
    this.#connections.add(connection);
  }

  #onPacket(from: ServerConnection, packet: Packet): void {
    const handler = HANDLERS_BY_NUMBER[packet.type.number];
    if (packet.magic !== 'REQ') from.send('ERROR', 'INVALID_MAGIC', 'Request magic expected');
    else if (!handler) from.send('ERROR', 'INVALID_COMMAND', 'Command not expected');
    else this.#handle(handler, from, packet);
  }

  /** Fails the job of a worker's packet; rejects the request of any other peer. */
  #onOversized(from: ServerConnection, packet: Packet, size: number): void {
    const { message } = tooLarge(`the ${packet.name} from ${from.name}`, size, this.#options.maxPacketSize);
    this.#options.logger?.warn(message);
    if (packet.name.startsWith('WORK_')) failOversized(message)(from, packet, this.#state);
    else from.send('ERROR', 'ARGUMENT_TOO_LARGE', message);
  }

  /** Replies to a malformed argument with an ERROR, because the packets that follow can be decoded. */
  #handle(handler: PacketHandler, from: ServerConnection, packet: Packet): void {
    try {
      handler(from, packet, this.#state);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      from.send('ERROR', 'INVALID_ARGUMENT', error.message);
    }
  }

  #onClose(connection: ServerConnection, error: GearmanError): void {
    this.#connections.delete(connection);
    this.#backlogs.delete(connection);
    for (const job of connection.running) job.timer?.stop();
    this.#state.queue.disconnect(connection);
    if (error.code === 'connection-lost' || error.code === 'closed') return;
    const namesPeer = error.message.includes(connection.name);
    this.#options.logger?.warn(namesPeer ? error.message : `${connection.name}: ${error.message}`);
  }

  #permits(from: ServerConnection, right: AccessRight, functionName: string): boolean {
    const isPermitted = this.#access?.permits(from.certificate, right, functionName) ?? true;
    if (!isPermitted) {
      const who = from.certificate === undefined ? 'without a certificate' : `as "${from.certificate}"`;
      this.#options.logger?.warn(`${from.name} ${who} may not ${right} "${functionName}"`);
    }
    return isPermitted;
  }

  #giveUp(job: ServerJob): void {
    this.#options.logger?.error(
      `job ${job.handle} of ${job.queue.name} failed: ${job.retries} workers disconnected or timed out while running it`,
    );
    for (const client of job.clients) client.send('WORK_FAIL', job.handle);
  }

  #wake(worker: Peer): void {
    worker.sendJoined('NOOP', '');
    this.#wakeTimer ??= setTimeout(() => {
      this.#wakeTimer = undefined;
      this.#state.queue.wakeAll();
    }, WAKE_LIMIT).unref();
  }
}

/** Decodes a string with one character per byte. */
function textOf(key: string): string {
  return Buffer.from(key, 'latin1').toString();
}

function cancelledJob({ handle, queue, unique, payload, worker }: ServerJob): CancelledJob {
  const isRunning = worker !== undefined;
  return { handle, function: textOf(queue.name), unique: textOf(unique), payload, isRunning };
}
