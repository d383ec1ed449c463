import type { Socket } from 'node:net';
import os from 'node:os';
import type { SecureContextOptions, TlsOptions } from 'node:tls';
import { checkRange } from '../argument-checks.ts';
import { DEFAULT_MAX_PACKET_SIZE } from '../codec/decoder.ts';
import type { Packet } from '../codec/packet.ts';
import { tooLarge } from '../codec/packet-size.ts';
import { checkPacketLimit } from '../connection/check-options.ts';
import { DEFAULT_PORT } from '../connection/server-address.ts';
import { GearmanError, ProtocolError } from '../errors.ts';
import { Journal } from '../journal/journal.ts';
import type { Logger } from '../logger.ts';
import { unlessAborted } from '../unless-aborted.ts';
import { AccessList, type AccessRight, type AccessRules } from './access-list.ts';
import { adminReply } from './admin-replies.ts';
import { Backlogs } from './backlogs.ts';
import { CLIENT_PACKETS, restoreJobs } from './client-packets.ts';
import { JobQueue } from './job-queue.ts';
import { JobTimers } from './job-timers.ts';
import { type ListenAddress, Listener } from './listener.ts';
import type { QueuedJob } from './queue-model.ts';
import { ServerConnection } from './server-connection.ts';
import type { PacketHandler, PacketHandlers, ServerState } from './server-state.ts';
import { failOversized, WORKER_PACKETS } from './worker-packets.ts';

/** A worker that was woken and did not grab in so many milliseconds is not waited for. */
const WAKE_LIMIT = 100;

const DEFAULT_MAX_OUTPUT_BUFFER = 64 * 1024 * 1024;
const DEFAULT_MAX_TOTAL_OUTPUT = 256 * 1024 * 1024;

/** Handles must stay below 64 bytes. */
const MAX_HOST_NAME_LENGTH = 40;

const HANDLERS: PacketHandlers = { ...CLIENT_PACKETS, ...WORKER_PACKETS };

/** How a {@link JobServer} is set up. */
export interface JobServerOptions {
  readonly logger?: Logger | undefined;
  /**
   * Take TLS connections only, with these options of `node:tls`; `requestCert: true` refuses whoever has no
   * certificate of `ca`. A handshake may take 10 s, unless `handshakeTimeout` says otherwise.
   */
  readonly tls?: TlsOptions | undefined;
  /**
   * Who may submit, register or administer which functions, by certificate; it needs `tls` with `requestCert`. What
   * is refused is answered with the code `ACCESS_DENIED`. Default: all may do all.
   */
  readonly access?: AccessRules | undefined;
  /**
   * A directory for the background jobs: each is on the disk before its client gets JOB_CREATED, and is there again
   * after a crash, or a {@link JobServer.close}. One that ran at that moment is run again. A directory belongs to one
   * server at a time. Default: jobs live in memory alone.
   */
  readonly journal?: string | undefined;
  /**
   * Maximum number of connections; further ones are closed, which is logged. Default: as many as the limit of file
   * descriptors has room for.
   */
  readonly maxConnections?: number | undefined;
  /**
   * How many workers may be given a job, when each is lost or exceeds its time: then it fails. gearmand's
   * `--job-retries`. Default: any number.
   */
  readonly maxAttempts?: number | undefined;
  /**
   * Bytes of the largest packet that is taken. Of a larger one only the beginning is read: the submission is refused, or
   * the job that a worker sent it for fails. Default 64 MiB.
   */
  readonly maxPacketSize?: number | undefined;
  /** Bytes that are kept for a peer that does not read, before it is cut off. Default 64 MiB. */
  readonly maxOutputBuffer?: number | undefined;
  /**
   * Bytes buffered for all slow peers together; beyond it, the peer with the most is disconnected.
   * Default 256 MiB.
   */
  readonly maxTotalOutput?: number | undefined;
  /** Clients get WORK_EXCEPTION without asking for it: gearmand's `--exceptions`. Default false. */
  readonly exceptions?: boolean | undefined;
  /**
   * Called when an operator sends the admin command `shutdown`, or `shutdown graceful`; it is for the caller to
   * {@link JobServer.drain} and to close. Default: the command is unknown, as to gearmand.
   */
  readonly onShutdown?: ((graceful: boolean) => void) | undefined;
}

/**
 * A job server in this process: the same protocol as gearmand's, admin text protocol included. It behaves as gearmand 2
 * does, with gearmand's defects mended: a running job stays with its worker when that stops offering the function; a
 * background job stays when a foreground job of the same key loses its client; a function that nobody uses is forgotten.
 */
export class JobServer implements AsyncDisposable {
  readonly #options: JobServerOptions;
  readonly #listener: Listener;
  #access: AccessList | undefined;
  readonly #connections = new Set<ServerConnection>();
  readonly #backlogs: Backlogs;
  readonly #state: ServerState & { journal: Journal | undefined };
  #connectionCount = 0;
  #wakeTimer: NodeJS.Timeout | undefined;

  /** @throws GearmanError `invalid-argument` for `access` without clients' certificates, and for unusable `tls` */
  constructor(options: JobServerOptions = {}) {
    checkPacketLimit(options.maxPacketSize);
    checkRange('maxOutputBuffer', options.maxOutputBuffer, 0, Number.POSITIVE_INFINITY);
    checkRange('maxTotalOutput', options.maxTotalOutput, 0, Number.POSITIVE_INFINITY);
    this.#options = options;
    this.#backlogs = new Backlogs(options.maxTotalOutput ?? DEFAULT_MAX_TOTAL_OUTPUT);
    const { logger, tls, access, maxConnections, maxAttempts, onShutdown } = options;
    if (access) this.setAccess(access);
    const onConnection = (socket: Socket) => this.#onConnection(socket);
    this.#listener = new Listener({ logger, tls, maxConnections, onConnection });
    this.#state = {
      queue: new JobQueue({
        handlePrefix: `H:${os.hostname().slice(0, MAX_HOST_NAME_LENGTH)}`,
        maxAttempts,
        onWake: ({ owner }) => this.#wake(owner),
        onGiveUp: (job) => this.#giveUp(job),
        onFinish: ({ handle }) => this.#state.journal?.remove(handle),
      }),
      timers: new JobTimers(),
      journal: undefined,
      connections: this.#connections,
      permits: (from, right, functionName) => this.#permits(from, right, functionName),
      onShutdown,
    };
  }

  /** Where the server listens; undefined before {@link listen} and after {@link close}. */
  get address(): ListenAddress | undefined {
    return this.#listener.address;
  }

  /**
   * Starts to listen.
   *
   * @param port 0 takes a free one
   * @throws GearmanError `listen-failed`, for instance because the port is taken, or because it listens already;
   * `invalid-argument` for an invalid port; `journal-failed`
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
   * Takes a renewed certificate, its key, or other authorities into use. Connections that stand stay as they are.
   *
   * @throws GearmanError `invalid-argument` for what is no certificate or key, which changes nothing, and without TLS
   */
  setSecureContext(options: SecureContextOptions): void {
    this.#listener.setSecureContext(options);
  }

  /**
   * Replaces the rules of who may do what, for connections that stand, too. Jobs that were submitted and functions that
   * were registered before stay.
   *
   * @throws GearmanError `invalid-argument` without clients' certificates
   */
  setAccess(access: AccessRules): void {
    if (!this.#options.tls?.requestCert) {
      throw new GearmanError(
        'invalid-argument',
        'an access list goes by certificate: give the job server the option tls, with requestCert and ca',
      );
    }
    this.#access = new AccessList(access);
  }

  /**
   * Takes no further connections and jobs, hands out nothing more, and waits for the jobs that run. {@link close} has
   * still to be called.
   *
   * @throws GearmanError `aborted`
   */
  async drain(signal?: AbortSignal): Promise<void> {
    void this.#listener.stop(); // it never rejects
    await unlessAborted(this.#state.queue.drain(), signal);
  }

  /** Stops to listen and hangs up on everybody. The jobs it has are lost, but for those in a journal. */
  async close(): Promise<void> {
    clearTimeout(this.#wakeTimer);
    this.#state.timers.stopAll();
    const stopped = this.#listener.stop();
    await this.#state.journal?.close(); // first: a job is not over because its worker is hung up on
    await Promise.all(Array.from(this.#connections, (connection) => connection.close()));
    this.#listener.destroySockets();
    await stopped;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #onConnection(socket: Socket): void {
    this.#connectionCount += 1;
    this.#connections.add(
      new ServerConnection(socket, {
        number: this.#connectionCount,
        maxPacketSize: this.#options.maxPacketSize,
        maxOutputBuffer: this.#options.maxOutputBuffer ?? DEFAULT_MAX_OUTPUT_BUFFER,
        wantsExceptions: this.#options.exceptions ?? false,
        onBacklog: (connection, size) => this.#backlogs.add(connection, size),
        onPacket: (connection, packet) => this.#onPacket(connection, packet),
        onOversized: (connection, packet, size) => this.#onOversized(connection, packet, size),
        onLine: (connection, line) => connection.reply(() => adminReply(line, connection, this.#state)),
        onClose: (connection, error) => this.#onClose(connection, error),
      }),
    );
  }

  #onPacket(from: ServerConnection, packet: Packet): void {
    const handler = HANDLERS[packet.name];
    if (packet.magic !== 'REQ') from.send('ERROR', 'INVALID_MAGIC', 'Request magic expected');
    else if (!handler) from.send('ERROR', 'INVALID_COMMAND', 'Command not expected');
    else this.#handle(handler, from, packet);
  }

  /** Ends the job that a worker's packet is about; refuses only this request of another peer. */
  #onOversized(from: ServerConnection, packet: Packet, size: number): void {
    const limit = this.#options.maxPacketSize ?? DEFAULT_MAX_PACKET_SIZE;
    const { message } = tooLarge(`the ${packet.name} from ${from.name}`, size, limit);
    this.#options.logger?.warn(message);
    if (packet.name.startsWith('WORK_')) failOversized(message)(from, packet, this.#state);
    else from.send('ERROR', 'ARGUMENT_TOO_LARGE', message);
  }

  /** A malformed argument is answered; the packets after it are whole. */
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
    for (const job of connection.peer.running) this.#state.timers.stop(job);
    this.#state.queue.disconnect(connection.peer);
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

  #giveUp(job: QueuedJob<ServerConnection>): void {
    this.#options.logger?.error(
      `job ${job.handle} of ${job.queue.name} failed: ${job.retries} workers were lost with it or took too long`,
    );
    for (const { owner } of job.clients) owner.send('WORK_FAIL', job.handle);
  }

  #wake(worker: ServerConnection): void {
    worker.send('NOOP');
    this.#wakeTimer ??= setTimeout(() => {
      this.#wakeTimer = undefined;
      this.#state.queue.wakeAll();
    }, WAKE_LIMIT).unref();
  }
}
