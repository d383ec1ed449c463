import type { Socket } from 'node:net';
import { PacketEncoder } from '../codec/encoder.ts';
import type { Magic } from '../codec/packet.ts';
import type { ArgumentValues, PacketName } from '../packets.ts';

/** Batches from this size on are written at once. */
const FULL_BATCH = 64 * 1024;

/** Writes packets to a socket. All packets of one callback of the event loop leave in one system call. */
export class BatchedWriter {
  readonly #socket: Socket;
  readonly #encoder: PacketEncoder;
  #scheduled = false;

  constructor(socket: Socket, magic: Magic) {
    this.#socket = socket;
    this.#encoder = new PacketEncoder(magic);
  }

  /** Number of bytes that the operating system has not accepted yet. */
  get pending(): number {
    return this.#encoder.length + this.#socket.writableLength;
  }

  /** Whether to stop producing until the socket emits `drain`. */
  get isFull(): boolean {
    return this.#socket.writableNeedDrain;
  }

  send<N extends PacketName>(name: N, ...args: ArgumentValues<N>): void {
    this.#encoder.add(name, ...args);
    this.#schedule();
  }

  /** Sends raw bytes. */
  sendBytes(bytes: Uint8Array): void {
    this.#encoder.addBytes(bytes);
    this.#schedule();
  }

  /** Writes the batch now. */
  flush(): void {
    const parts = this.#encoder.take();
    if (parts.length === 0 || !this.#socket.writable) return;
    if (parts.length > 1) this.#socket.cork();
    for (const part of parts) this.#socket.write(part);
    if (parts.length > 1) this.#socket.uncork();
  }

  #schedule(): void {
    if (this.#encoder.length >= FULL_BATCH) {
      this.flush();
    } else if (!this.#scheduled) {
      this.#scheduled = true;
      queueMicrotask(this.#afterReactions);
    }
  }

  // A tick scheduled in a microtask runs after all promise reactions, and before setImmediate, which costs an extra
  // turn of the event loop.
  readonly #afterReactions = (): void => process.nextTick(this.#flushScheduled);

  readonly #flushScheduled = (): void => {
    this.#scheduled = false;
    this.flush();
  };
}
