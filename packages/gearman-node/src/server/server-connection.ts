import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { Packet } from '../codec/packet.ts';
import { Connection } from '../connection/connection.ts';
import { GearmanError, type ProtocolError } from '../errors.ts';
import type { ArgumentValues, PacketName } from '../packets.ts';
import { Peer } from './peer.ts';

/** What a connection needs of its server. */
export interface ServerConnectionOptions {
  /** Names the connection in the admin command `workers`. */
  readonly number: number;
  readonly maxPacketSize: number | undefined;
  /** Bytes that are kept for a peer that does not read, before it is cut off. */
  readonly maxOutputBuffer: number;
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
  wantsExceptions = false;
  /** How long a job of a function may run here, in milliseconds: what CAN_DO_TIMEOUT said. */
  readonly timeLimits: Map<string, number> = new Map();
  readonly #connection: Connection;
  readonly #maxOutputBuffer: number;
  /** What waits its turn to be sent; undefined is a place that is kept for an answer. */
  #kept: { send: (() => void) | undefined }[] = [];

  constructor(socket: Socket, options: ServerConnectionOptions) {
    this.number = options.number;
    this.ip = socket.remoteAddress ?? '-';
    this.name = `${this.ip}:${socket.remotePort}`;
    this.certificate = socket instanceof TLSSocket && socket.authorized ? commonName(socket) : undefined;
    this.#maxOutputBuffer = options.maxOutputBuffer;
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
    if (this.#kept.length > 0) {
      this.#kept.push({ send: () => this.#connection.send(name, ...args) });
      return;
    }
    this.#checkOutput();
    this.#connection.send(name, ...args);
  }

  /** Sends a reply of the admin text protocol. */
  sendText(text: string): void {
    const bytes = Buffer.from(text, 'latin1');
    if (this.#kept.length > 0) {
      this.#kept.push({ send: () => this.#connection.sendBytes(bytes) });
      return;
    }
    this.#checkOutput();
    this.#connection.sendBytes(bytes);
  }

  /**
   * Keeps a place for an answer that is known later: what is sent meanwhile comes after it, for a client takes answers
   * in the order of its requests. Until then nothing is read, so that no more than a chunk's answers are kept.
   *
   * @param answer sends it
   */
  async sendLater(answer: Promise<() => void>): Promise<void> {
    const place: { send: (() => void) | undefined } = { send: undefined };
    this.#kept.push(place);
    this.#connection.pause();
    place.send = await answer;
    if (this.#kept[0] !== place) return;
    const rest = this.#kept.findIndex(({ send }) => send === undefined);
    const due = this.#kept.splice(0, rest < 0 ? this.#kept.length : rest);
    const later = this.#kept;
    this.#kept = [];
    for (const { send } of due) send?.();
    this.#kept = later;
    if (later.length === 0) this.#connection.resume();
  }

  async close(): Promise<void> {
    await this.#connection.close();
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
  #checkOutput(): void {
    if (this.#connection.pendingBytes <= this.#maxOutputBuffer) return;
    const message = `${this.ip} does not read: over ${this.#maxOutputBuffer} bytes wait for it`;
    this.#connection.destroy(new GearmanError('peer-too-slow', message));
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
