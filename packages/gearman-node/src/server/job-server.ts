import net, { type AddressInfo, type Socket } from 'node:net';
import os from 'node:os';
import tls, { type TlsOptions } from 'node:tls';
import type { Packet } from '../codec/packet.ts';
import { DEFAULT_PORT } from '../connection/server-address.ts';
import { GearmanError } from '../errors.ts';
import type { Logger } from '../logger.ts';
import { adminReply } from './admin-replies.ts';
import { CLIENT_PACKETS } from './client-packets.ts';
import { GENERAL_PACKETS } from './general-packets.ts';
import { JobQueue } from './job-queue.ts';
import { JobTimers } from './job-timers.ts';
import type { PacketHandlers } from './packet-handler.ts';
import { ServerConnection } from './server-connection.ts';
import type { ServerState } from './server-state.ts';
import { WORKER_PACKETS } from './worker-packets.ts';

/** A worker that was woken and did not grab in so many milliseconds is not waited for. */
const WAKE_LIMIT = 100;

/** A peer that vanished without a word is noticed after this many milliseconds and some probes. */
const KEEP_ALIVE_DELAY = 30_000;

const DEFAULT_MAX_OUTPUT_BUFFER = 64 * 1024 * 1024;

/** Handles must stay below 64 bytes. */
const MAX_HOST_NAME_LENGTH = 40;

const HANDLERS: PacketHandlers = { ...GENERAL_PACKETS, ...CLIENT_PACKETS, ...WORKER_PACKETS };

/** How a {@link JobServer} is set up. */
export interface JobServerOptions {
  readonly logger?: Logger | undefined;
  /** Take TLS connections only, with these options of `node:tls`. */
  readonly tls?: TlsOptions | undefined;
  /** Bytes of the largest packet that is taken. Default 64 MiB. */
  readonly maxPacketSize?: number | undefined;
  /** Bytes that are kept for a peer that does not read, before it is cut off. Default 64 MiB. */
  readonly maxOutputBuffer?: number | undefined;
}

/** Where a {@link JobServer} listens. */
export interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

/**
 * A job server in this process: the same protocol as gearmand's, admin text protocol included. It behaves as gearmand
 * does, but for gearmand's defects: see {@link JobQueue}. It keeps its jobs in memory.
 */
export class JobServer implements AsyncDisposable {
  readonly #options: JobServerOptions;
  readonly #listener: net.Server;
  readonly #sockets = new Set<Socket>();
  readonly #connections = new Set<ServerConnection>();
  readonly #state: ServerState;
  #connectionCount = 0;
  #wakeTimer: NodeJS.Timeout | undefined;

  constructor(options: JobServerOptions = {}) {
    this.#options = options;
    const onConnection = (socket: Socket) => this.#onConnection(socket);
    this.#listener = options.tls
      ? tls.createServer(options.tls, onConnection)
      : net.createServer(onConnection);
    this.#listener.on('connection', (socket) => this.#onSocket(socket));
    this.#listener.on('error', (error) =>
      options.logger?.error(`the job server's listener failed: ${error.message}`),
    );
    const host = os.hostname().slice(0, MAX_HOST_NAME_LENGTH);
    this.#state = {
      queue: new JobQueue(`H:${host}`, ({ owner }) => this.#wake(owner)),
      timers: new JobTimers(),
      connections: this.#connections,
    };
  }

  /** Where the server listens; undefined before {@link listen} and after {@link close}. */
  get address(): ListenAddress | undefined {
    const address = this.#listener.address() as AddressInfo | null;
    return address ? { host: address.address, port: address.port } : undefined;
  }

  /**
   * Starts to listen.
   *
   * @param port 0 takes a free one
   * @throws GearmanError `listen-failed`, for instance because the port is taken
   */
  async listen(port: number = DEFAULT_PORT, host = '127.0.0.1'): Promise<ListenAddress> {
    await new Promise<void>((resolve, reject) => {
      const onError = (cause: Error) => {
        const message = `the job server cannot listen on ${host}:${port}: ${cause.message}; is another one running there?`;
        reject(new GearmanError('listen-failed', message, { cause }));
      };
      this.#listener.once('error', onError);
      this.#listener.listen(port, host, () => {
        this.#listener.off('error', onError);
        resolve();
      });
    });
    return this.address as ListenAddress;
  }

  /** Stops to listen and hangs up on everybody. The jobs it has are lost. */
  async close(): Promise<void> {
    clearTimeout(this.#wakeTimer);
    this.#state.timers.stopAll();
    const closed = new Promise((resolve) => this.#listener.close(resolve));
    await Promise.all(Array.from(this.#connections, (connection) => connection.close()));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** Before a TLS handshake, if there is one. */
  #onSocket(socket: Socket): void {
    socket.setNoDelay(true);
    socket.setKeepAlive(true, KEEP_ALIVE_DELAY);
    this.#sockets.add(socket);
    socket.once('close', () => this.#sockets.delete(socket));
  }

  #onConnection(socket: Socket): void {
    this.#connectionCount += 1;
    this.#connections.add(
      new ServerConnection(socket, {
        number: this.#connectionCount,
        maxPacketSize: this.#options.maxPacketSize,
        maxOutputBuffer: this.#options.maxOutputBuffer ?? DEFAULT_MAX_OUTPUT_BUFFER,
        onPacket: (connection, packet) => this.#onPacket(connection, packet),
        onLine: (connection, line) => connection.sendText(adminReply(line, this.#state)),
        onClose: (connection, error) => this.#onClose(connection, error),
      }),
    );
  }

  #onPacket(from: ServerConnection, packet: Packet): void {
    const handler = HANDLERS[packet.name];
    if (packet.magic !== 'REQ') from.send('ERROR', 'INVALID_MAGIC', 'Request magic expected');
    else if (!handler) from.send('ERROR', 'INVALID_COMMAND', 'Command not expected');
    else handler(from, packet, this.#state);
  }

  #onClose(connection: ServerConnection, error: GearmanError): void {
    this.#connections.delete(connection);
    for (const job of connection.peer.running) this.#state.timers.stop(job);
    this.#state.queue.disconnect(connection.peer);
    if (error.code !== 'connection-lost' && error.code !== 'closed')
      this.#options.logger?.warn(error.message);
  }

  #wake(worker: ServerConnection): void {
    worker.send('NOOP');
    this.#wakeTimer ??= setTimeout(() => {
      this.#wakeTimer = undefined;
      this.#state.queue.wakeAll();
    }, WAKE_LIMIT).unref();
  }
}
