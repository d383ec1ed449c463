import type { Socket } from 'node:net';
import { PacketDecoder } from '../codec/decoder.ts';
import type { Magic, Packet } from '../codec/packet.ts';
import { ConnectionError, GearmanError, ProtocolError } from '../errors.ts';
import { BatchedWriter } from './batched-writer.ts';
import type { FlushGroup } from './flush-group.ts';
import { SlicedReader } from './sliced-reader.ts';

/** Time for the peer to close its side after this side was closed, in milliseconds. */
const CLOSE_LIMIT = 2000;

/** Callbacks and limits of a {@link Connection}. */
export interface ConnectionOptions {
  /** `REQ` for a client or a worker, `RES` for a server. */
  readonly magic: Magic;
  /** Name of the peer in error messages. */
  readonly peer: string;
  readonly onPacket: (packet: Packet) => void;
  /** Called with lines of the admin text protocol. By default they are a protocol error. */
  readonly onLine?: (line: Buffer) => void;
  /** Called once, when the connection has closed, with the reason. */
  readonly onClose: (error: GearmanError) => void;
  /** Called when the peer violates the protocol. Default: the connection is destroyed. */
  readonly onProtocolError?: (error: ProtocolError) => void;
  /** Maximum size of a packet in bytes. Default 64 MiB. */
  readonly maxPacketSize?: number | undefined;
  /** Called with the head of a packet over the limit and its size; the rest is skipped. */
  readonly onOversized?: (packet: Packet, size: number) => void;
  /** The connections of a server, which are read in slices and written together. Default: neither. */
  readonly group?: FlushGroup;
}

/** Sends and receives packets over one connected socket. It never reconnects. */
export class Connection extends BatchedWriter {
  readonly #socket: Socket;
  readonly #options: ConnectionOptions;
  readonly #decoder: PacketDecoder;
  readonly #input: { pause(): unknown; resume(): unknown };
  readonly #closed: Promise<void>;
  #reason: GearmanError | undefined;

  constructor(socket: Socket, options: ConnectionOptions) {
    super(socket, options.magic, options.group?.schedule);
    this.#socket = socket;
    this.#options = options;
    const { onPacket, onLine, maxPacketSize, onOversized } = options;
    this.#decoder = new PacketDecoder({ onPacket, ...(onLine && { onLine }), maxPacketSize, onOversized });
    this.#closed = new Promise((resolve) => {
      socket.once('close', () => {
        this.#decoder.stop();
        options.onClose(this.#reason ?? this.#lost('closed by the peer'));
        resolve();
      });
    });
    socket.on('error', (cause) => {
      this.#reason ??= this.#lost(cause.message, cause);
    });
    const { group } = options;
    this.#input = group
      ? new SlicedReader(socket, group, (chunk) => this.#read(chunk))
      : socket.on('data', (chunk: Buffer) => {
          this.hold();
          this.#read(chunk);
          this.release();
        });
  }

  /** True if packets can still be sent. */
  get isOpen(): boolean {
    return this.#socket.writable;
  }

  /** Resolves when the socket accepts more data, or when the connection has closed. */
  async writable(): Promise<void> {
    if (!this.isFull || this.#socket.destroyed) return;
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

  /** Stops reading, which applies back-pressure to the peer. */
  pause(): void {
    this.#input.pause();
  }

  resume(): void {
    this.#input.resume();
  }

  /** Destroys the connection. Unsent data is lost. */
  destroy(error: GearmanError): void {
    this.#reason ??= error;
    this.#decoder.stop();
    this.#socket.destroy();
  }

  /** Sends pending data and closes the connection. Ignores further input. Resolves when the connection has closed. */
  async close(reason?: GearmanError): Promise<void> {
    this.#reason ??=
      reason ?? new GearmanError('closed', `the connection to ${this.#options.peer} was closed`);
    this.#decoder.stop();
    this.flush();
    this.#input.resume();
    this.#socket.end();
    const timer = setTimeout(() => this.#socket.destroy(), CLOSE_LIMIT);
    await this.#closed;
    clearTimeout(timer);
  }

  #read(chunk: Buffer): void {
    try {
      this.#decoder.decode(chunk);
    } catch (error) {
      const { onProtocolError } = this.#options;
      if (error instanceof ProtocolError && onProtocolError) onProtocolError(error);
      else this.destroy(error instanceof GearmanError ? error : this.#internalError(error));
    }
  }

  /** Closes this connection, but does not end the process. */
  #internalError(cause: unknown): GearmanError {
    const reason = cause instanceof Error ? cause.message : String(cause);
    const message = `a packet from ${this.#options.peer} caused an internal error: ${reason}`;
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
