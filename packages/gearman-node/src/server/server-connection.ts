import type { Socket } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { TLSSocket } from 'node:tls';
import type { Packet } from '../codec/packet.ts';
import { Connection } from '../connection/connection.ts';
import { GearmanError, type ProtocolError } from '../errors.ts';
import type { ArgumentValues, PacketName } from '../packets.ts';
import { Peer } from './queue-model.ts';

/** Characters of a long reply that are produced in one turn of the event loop. */
const PIECE = 16 * 1024;

/** Buffered bytes above which a peer counts as slow. */
export const BACKLOG: number = 64 * 1024;

/** Overhead of a buffered packet or reply, in bytes. */
const OVERHEAD = 128;

/** A reply of the admin text protocol, line ends included: a short one whole, a long one in parts. */
export type AdminReply = string | Iterable<string>;

/** What a connection needs of its server. */
export interface ServerConnectionOptions {
  /** Names the connection in the admin command `workers`. */
  readonly number: number;
  readonly maxPacketSize: number | undefined;
  /** Bytes that are kept for a peer that does not read, before it is cut off. */
  readonly maxOutputBuffer: number;
  /** Whether the peer gets WORK_EXCEPTION without asking for it. */
  readonly wantsExceptions: boolean;
  /** Called before `size` more bytes are buffered for a peer that is slow then. */
  readonly onBacklog: (connection: ServerConnection, size: number) => void;
  readonly onPacket: (connection: ServerConnection, packet: Packet) => void;
  /** Takes the beginning of a packet over the limit, and its size. */
  readonly onOversized: (connection: ServerConnection, packet: Packet, size: number) => void;
  readonly onLine: (connection: ServerConnection, line: string) => void;
  readonly onClose: (connection: ServerConnection, error: GearmanError) => void;
}

/** One connection to a job server: a client's, a worker's, an operator's, or all of that. */
export class ServerConnection {
  readonly number: number;
  /** Its address and port, as log lines name it. */
  readonly name: string;
  readonly ip: string;
  /** The common name of the certificate that it proved to have; undefined for none. */
  readonly certificate: string | undefined;
  /** Its place in the queue. */
  readonly peer: Peer<ServerConnection> = new Peer(this);
  /** What SET_CLIENT_ID said; `-` until then. One character per byte. */
  clientId = '-';
  /** Whether the client wants WORK_EXCEPTION rather than WORK_FAIL. */
  wantsExceptions: boolean;
  /** How long a job of a function may run here, in milliseconds: what CAN_DO_TIMEOUT said. */
  readonly timeLimits: Map<string, number> = new Map();
  readonly #connection: Connection;
  readonly #maxOutputBuffer: number;
  readonly #onBacklog: ServerConnectionOptions['onBacklog'];
  /** Replies that wait to be sent; the first is being sent. */
  #kept: { readonly send: () => Promise<void> | void; readonly size: number }[] = [];
  #keptBytes = 0;

  constructor(socket: Socket, options: ServerConnectionOptions) {
    this.number = options.number;
    this.ip = socket.remoteAddress ?? '-';
    this.name = `${this.ip}:${socket.remotePort}`;
    this.certificate = socket instanceof TLSSocket && socket.authorized ? commonName(socket) : undefined;
    this.wantsExceptions = options.wantsExceptions;
    this.#maxOutputBuffer = options.maxOutputBuffer;
    this.#onBacklog = options.onBacklog;
    this.#connection = new Connection(socket, {
      magic: 'RES',
      peer: this.name,
      maxPacketSize: options.maxPacketSize,
      onPacket: (packet) => options.onPacket(this, packet),
      onOversized: (packet, size) => options.onOversized(this, packet, size),
      onLine: (line) => options.onLine(this, line.toString('latin1')),
      onClose: (error) => options.onClose(this, error),
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

  /**
   * Sends the reply to an admin command. The command is carried out once those before it have been answered. A long reply
   * is made piece by piece, and no faster than it is read: other connections are served between two pieces.
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
   * Keeps a place for an answer that is known later: what is sent meanwhile comes after it, for a client takes answers
   * in the order of its requests. Until then nothing is read, so that no more than a chunk's answers are kept.
   *
   * @param answer sends it
   */
  sendLater(answer: Promise<() => void>): void {
    this.#keep(async () => {
      const send = await answer;
      const kept = this.#kept;
      this.#kept = []; // its turn has come: it is not kept again
      send();
      this.#kept = kept;
    }, OVERHEAD);
  }

  /** Bytes that wait for the peer to read. */
  get pendingBytes(): number {
    return this.#connection.pendingBytes + this.#keptBytes;
  }

  /** Hangs up on a peer that does not read. */
  cutOff(reason: string): void {
    this.#connection.destroy(new GearmanError('peer-too-slow', `${this.name} does not read: ${reason}`));
  }

  async close(): Promise<void> {
    await this.#connection.close();
  }

  #keep(send: () => Promise<void> | void, size: number): void {
    this.#checkOutput(size);
    this.#keptBytes += size;
    if (this.#kept.push({ send, size }) === 1) void this.#sendKept(); // it never rejects
  }

  async #sendKept(): Promise<void> {
    this.#connection.pause();
    try {
      for (let first = this.#kept[0]; first && this.#connection.isOpen; first = this.#kept[0]) {
        await first.send();
        this.#kept.shift();
        this.#keptBytes -= first.size;
      }
    } catch (cause) {
      const message = `an answer to ${this.name} could not be made: ${String(cause)}`;
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
      await turn();
      await this.#connection.writable();
      if (!this.#connection.isOpen) return;
    }
    this.#connection.sendBytes(Buffer.from(piece, 'latin1'));
  }

  /** Tells a peer that broke the protocol why, where gearmand does so too, and hangs up. */
  #refuse(error: ProtocolError): void {
    const code = REFUSALS[error.code];
    if (code === undefined) {
      this.#connection.destroy(error);
    } else {
      this.#connection.send('ERROR', code, error.message);
      void this.#connection.close(error); // it never rejects
    }
  }

  /** Looks at what waits before more is added: one packet may be as large as the packets that are taken. */
  #checkOutput(size: number): void {
    const { pendingBytes } = this;
    if (pendingBytes > this.#maxOutputBuffer) this.cutOff(`over ${this.#maxOutputBuffer} bytes wait for it`);
    else if (pendingBytes + size > BACKLOG) this.#onBacklog(this, size);
  }
}

/** What a peer is told before it is cut off; after anything else it could not read it. */
const REFUSALS: Readonly<Record<string, string>> = {
  'argument-missing': 'INVALID_PACKET',
  'packet-too-large': 'ARGUMENT_TOO_LARGE',
};

/** A certificate with several common names counts as having none. */
function commonName(socket: TLSSocket): string | undefined {
  const name: unknown = socket.getPeerCertificate().subject?.CN;
  return typeof name === 'string' ? name : undefined;
}
