import type { Socket } from 'node:net';
import { PacketDecoder } from '../codec/decoder.ts';
import type { Magic, Packet } from '../codec/packet.ts';
import { ConnectionError, GearmanError, ProtocolError } from '../errors.ts';
import type { ArgumentValues, PacketName } from '../packets.ts';
import { BatchedWriter } from './batched-writer.ts';

/** How long a peer has to close its side after we closed ours, in milliseconds. */
const CLOSE_LIMIT = 2000;

/** What a {@link Connection} tells its owner, and its limits. */
export interface ConnectionOptions {
  /** `REQ` for a client or a worker, `RES` for a server. */
  readonly magic: Magic;
  /** The peer, as error messages name it. */
  readonly peer: string;
  readonly onPacket: (packet: Packet) => void;
  /** Takes lines of the admin text protocol; without it they are a protocol error. */
  readonly onLine?: (line: Buffer) => void;
  /** Called once, when the connection is over, with the reason. */
  readonly onClose: (error: GearmanError) => void;
  /** What to do when the peer breaks the protocol. Default: cut the connection. */
  readonly onProtocolError?: (error: ProtocolError) => void;
  /** Bytes of the largest packet that is taken. Default 64 MiB. */
  readonly maxPacketSize?: number | undefined;
  /** Takes the beginning of a packet over the limit, and its size; the rest is skipped. */
  readonly onOversized?: (packet: Packet, size: number) => void;
}

/** Packets over one connected socket, from its first byte to its last. It never reconnects. */
export class Connection {
  readonly #socket: Socket;
  readonly #options: ConnectionOptions;
  readonly #writer: BatchedWriter;
  readonly #decoder: PacketDecoder;
  readonly #closed: Promise<void>;
  #reason: GearmanError | undefined;

  constructor(socket: Socket, options: ConnectionOptions) {
    this.#socket = socket;
    this.#options = options;
    this.#writer = new BatchedWriter(socket, options.magic);
    this.#decoder = new PacketDecoder(options);
    this.#closed = new Promise((resolve) => {
      socket.once('close', () => {
        this.#decoder.stop();
        options.onClose(this.#reason ?? this.#lost('the peer closed it'));
        resolve();
      });
    });
    socket.on('error', (cause) => {
      this.#reason ??= this.#lost(cause.message, cause);
    });
    socket.on('data', (chunk: Buffer) => this.#read(chunk));
  }

  /** Whether packets can still be sent. */
  get isOpen(): boolean {
    return this.#socket.writable;
  }

  /** Bytes that were sent and that the peer's side has not taken. */
  get pendingBytes(): number {
    return this.#writer.pending;
  }

  /** Sends a packet once this callback and its promise reactions are done. Does nothing when the connection is over. */
  send<N extends PacketName>(name: N, ...args: ArgumentValues<N>): void {
    if (this.isOpen) this.#writer.send(name, ...args);
  }

  /** Sends bytes that are no packet. */
  sendBytes(bytes: Uint8Array): void {
    if (this.isOpen) this.#writer.sendBytes(bytes);
  }

  /** Resolves when there is room to send more, or when the connection is over. */
  async writable(): Promise<void> {
    if (!this.#writer.isFull || this.#socket.destroyed) return;
    await new Promise<void>((resolve) => {
      const settle = () => {
        this.#socket.off('drain', settle);
        this.#socket.off('close', settle);
        resolve();
      };
      this.#socket.on('drain', settle);
      this.#socket.on('close', settle);
    });
  }

  /** Stops to read: the peer is held up by TCP. */
  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  /** Cuts the connection. What was not sent is lost. */
  destroy(error: GearmanError): void {
    this.#reason ??= error;
    this.#decoder.stop();
    this.#socket.destroy();
  }

  /** Sends what is left, hangs up, and resolves when the connection is over. What still arrives is ignored. */
  async close(reason?: GearmanError): Promise<void> {
    this.#reason ??=
      reason ?? new GearmanError('closed', `the connection to ${this.#options.peer} was closed`);
    this.#decoder.stop();
    this.#writer.flush();
    this.#socket.resume();
    this.#socket.end();
    const timer = setTimeout(() => this.#socket.destroy(), CLOSE_LIMIT);
    await this.#closed;
    clearTimeout(timer);
  }

  #read(chunk: Buffer): void {
    try {
      this.#decoder.decode(chunk);
    } catch (error) {
      const refuse = this.#options.onProtocolError;
      if (error instanceof ProtocolError && refuse) refuse(error);
      else this.destroy(error instanceof GearmanError ? error : this.#defect(error));
    }
  }

  /** A fault of ours: it costs this connection, not the process. */
  #defect(cause: unknown): GearmanError {
    const reason = cause instanceof Error ? cause.message : String(cause);
    const message = `a packet from ${this.#options.peer} could not be handled: ${reason}`;
    return new GearmanError('internal', message, { cause });
  }

  #lost(reason: string, cause?: unknown): ConnectionError {
    return new ConnectionError(
      'connection-lost',
      `the connection to ${this.#options.peer} was lost: ${reason}`,
      {
        cause,
      },
    );
  }
}
