import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { Connection, type ConnectionOptions } from '../connection/connection.ts';
import type { FlushGroup } from '../connection/flush-group.ts';
import type { SharedTurns } from '../connection/shared-turns.ts';
import { GearmanError, type ProtocolError } from '../errors.ts';
import type { ArgumentValues, PacketName } from '../packets.ts';
import { Peer } from './queue-model.ts';

/** Characters of a long reply produced in one turn of the event loop. */
const PIECE = 16 * 1024;

/** Milliseconds of work for one peer in one turn of the event loop. */
const SLICE = 0.5;

/** Buffered bytes above which a peer counts as slow. */
const BACKLOG = 64 * 1024;

/** Fraction of the limit after which the backlogs are added up, because that is too slow for each packet. */
const COUNTED_PART = 1 / 16;

/** Overhead of a buffered packet or reply, in bytes. */
const OVERHEAD = 128;

/** A reply of the admin text protocol, line endings included: a string, or parts of a long reply. */
export type AdminReply = string | Iterable<string>;

/** Options and callbacks of a {@link ServerConnection}. */
export interface ServerConnectionOptions
  extends Omit<ConnectionOptions, 'magic' | 'peer' | 'onProtocolError'> {
  /** Identifies the connection in the admin command `workers`. */
  readonly number: number;
  /** The connections of the server. */
  readonly group: FlushGroup;
  /** Bytes buffered for a peer that does not read, before it is disconnected. */
  readonly maxOutputBuffer: number;
  /** True if the peer gets WORK_EXCEPTION without requesting it. */
  readonly wantsExceptions: boolean;
  /** Called before `size` more bytes are buffered for a slow peer. */
  readonly onBacklog: (size: number) => void;
}

/** One connection to a job server, of a client, a worker, an operator, or a combination of these. */
export class ServerConnection extends Peer {
  readonly number: number;
  /** Address and port of the peer, for log messages. */
  readonly name: string;
  readonly ip: string;
  /** The common name of the verified certificate; undefined without one. */
  readonly certificate: string | undefined;
  /** The argument of SET_CLIENT_ID, with one character per byte; initially `-`. */
  clientId = '-';
  wantsExceptions: boolean;
  /** Time limits from CAN_DO_TIMEOUT by function, in milliseconds. */
  readonly timeLimits: Map<string, number> = new Map();
  readonly #connection: Connection;
  readonly #turns: SharedTurns;
  readonly #maxOutputBuffer: number;
  readonly #onBacklog: ServerConnectionOptions['onBacklog'];
  /** Replies to be sent; the first one is being sent. */
  #kept: { readonly send: () => Promise<void> | void; readonly size: number }[] = [];
  #keptBytes = 0;

  constructor(socket: Socket, options: ServerConnectionOptions) {
    super();
    this.number = options.number;
    this.ip = socket.remoteAddress ?? '-';
    this.name = `${this.ip}:${socket.remotePort}`;
    this.certificate = socket instanceof TLSSocket && socket.authorized ? commonName(socket) : undefined;
    this.wantsExceptions = options.wantsExceptions;
    this.#turns = options.group.turns;
    this.#maxOutputBuffer = options.maxOutputBuffer;
    this.#onBacklog = options.onBacklog;
    this.#connection = new Connection(socket, {
      ...options,
      magic: 'RES',
      peer: this.name,
      onProtocolError: (error) => this.#refuse(error),
    });
  }

  send<N extends PacketName>(name: N, ...args: ArgumentValues<N>): void {
    const last = args.at(-1);
    const size = OVERHEAD + (typeof last === 'object' ? last.length : 0);
    if (this.#kept.length === 0) {
      this.#checkOutput(size);
      this.#connection.send(name, ...args);
    } else {
      this.#keep(() => this.#connection.send(name, ...args), size);
    }
  }

  sendJoined(name: PacketName, text: string, payload?: Uint8Array): void {
    const size = OVERHEAD + (payload?.length ?? 0);
    if (this.#kept.length === 0) {
      this.#checkOutput(size);
      this.#connection.sendJoined(name, text, payload);
    } else {
      this.#keep(() => this.#connection.sendJoined(name, text, payload), size);
    }
  }

  /**
   * Executes an admin command after the commands before it, and sends its reply. A long reply is produced in parts, no
   * faster than the peer reads it. Other connections are served between two parts.
   */
  reply(command: () => AdminReply): void {
    if (this.#kept.length > 0) {
      this.#keep(() => this.#sendReply(command()), OVERHEAD);
      return;
    }
    const reply = command();
    if (typeof reply === 'string') {
      this.#checkOutput(reply.length);
      this.#connection.sendBytes(Buffer.from(reply, 'latin1'));
    } else {
      this.#keep(() => this.#sendReply(reply), OVERHEAD);
    }
  }

  /**
   * Reserves the place of a later reply. Packets sent in the meantime follow it, because a client expects replies in
   * the order of its requests. Reading is paused until then, so that at most the replies to one chunk are kept.
   *
   * @param reply resolves with a function that sends the reply
   */
  sendLater(reply: Promise<() => void>): void {
    this.#keep(async () => {
      const send = await reply;
      const kept = this.#kept;
      this.#kept = []; // lets send() send instead of keeping
      send();
      this.#kept = kept;
    }, OVERHEAD);
  }

  /** Number of bytes buffered for the peer. */
  get pendingBytes(): number {
    return this.#connection.pendingBytes + this.#keptBytes;
  }

  /** Disconnects a peer that does not read. */
  disconnect(reason: string): void {
    this.#connection.destroy(new GearmanError('peer-too-slow', `${this.name} does not read: ${reason}`));
  }

  async close(): Promise<void> {
    await this.#connection.close();
  }

  #keep(send: () => Promise<void> | void, size: number): void {
    this.#checkOutput(size);
    this.#keptBytes += size;
    if (this.#kept.push({ send, size }) === 1) void this.#sendKept(); // never rejects
  }

  async #sendKept(): Promise<void> {
    this.#connection.pause();
    try {
      let end = performance.now() + SLICE;
      for (let first = this.#kept[0]; first && this.#connection.isOpen; first = this.#kept[0]) {
        await first.send();
        this.#kept.shift();
        this.#keptBytes -= first.size;
        if (performance.now() < end) continue;
        await this.#turns.next();
        end = performance.now() + SLICE;
      }
    } catch (cause) {
      const message = `an internal error prevented a reply to ${this.name}: ${String(cause)}`;
      this.#connection.destroy(new GearmanError('internal', message, { cause }));
    }
    this.#kept = [];
    this.#keptBytes = 0;
    this.#connection.resume();
  }

  async #sendReply(reply: AdminReply): Promise<void> {
    let piece = '';
    for (const part of typeof reply === 'string' ? [reply] : reply) {
      piece += part;
      if (piece.length < PIECE) continue;
      this.#connection.sendBytes(Buffer.from(piece, 'latin1'));
      piece = '';
      await this.#connection.writable();
      await this.#turns.next();
      if (!this.#connection.isOpen) return;
    }
    this.#connection.sendBytes(Buffer.from(piece, 'latin1'));
  }

  /** Closes the connection of a peer that violated the protocol. Sends an ERROR first if gearmand does. */
  #refuse(error: ProtocolError): void {
    const code = ERROR_CODES[error.code];
    if (code === undefined) {
      this.#connection.destroy(error);
    } else {
      this.#connection.send('ERROR', code, error.message);
      void this.#connection.close(error); // never rejects
    }
  }

  /** Checks the backlog before a packet is added to it, so that one packet may exceed the limit. */
  #checkOutput(size: number): void {
    const { pendingBytes } = this;
    if (pendingBytes > this.#maxOutputBuffer)
      this.disconnect(`over ${this.#maxOutputBuffer} bytes are buffered for it`);
    else if (pendingBytes + size > BACKLOG) this.#onBacklog(size);
  }
}

/** Limits the number of bytes buffered for all slow peers together. */
export class Backlogs {
  readonly #limit: number;
  readonly #connections = new Set<ServerConnection>();
  /** Bytes added since the backlogs were last added up. */
  #added = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Registers `size` more bytes for a peer. Disconnects the slowest peer if the total exceeds the limit. */
  add(connection: ServerConnection, size: number): void {
    this.#connections.add(connection);
    this.#added += size;
    if (this.#added < this.#limit * COUNTED_PART) return;
    this.#added = 0;
    let total = 0;
    let slowest = connection;
    for (const each of this.#connections) {
      const { pendingBytes } = each;
      total += pendingBytes;
      if (pendingBytes > slowest.pendingBytes) slowest = each;
      if (pendingBytes <= BACKLOG && each !== connection) this.#connections.delete(each);
    }
    if (total > this.#limit) slowest.disconnect(`over ${this.#limit} bytes are buffered for slow peers`);
  }

  delete(connection: ServerConnection): void {
    this.#connections.delete(connection);
  }
}

/** Codes of the ERROR packets sent before the connection is closed. After other errors the peer could not read one. */
const ERROR_CODES: Readonly<Record<string, string>> = {
  'argument-missing': 'INVALID_PACKET',
  'packet-too-large': 'ARGUMENT_TOO_LARGE',
};

/** A certificate with several common names counts as having none. */
function commonName(socket: TLSSocket): string | undefined {
  const name: unknown = socket.getPeerCertificate().subject?.CN;
  return typeof name === 'string' ? name : undefined;
}
