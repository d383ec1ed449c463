import type { Socket } from 'node:net';
import { PacketEncoder } from '../codec/encoder.ts';
import type { Magic } from '../codec/packet.ts';
import type { ArgumentValues, PacketName } from '../packets.ts';

/** Beyond this the batch does not wait. */
const FULL_BATCH = 64 * 1024;

/** Writes packets to a socket: all that one callback of the event loop leads to leaves in one system call. */
export class BatchedWriter {
  readonly #socket: Socket;
  readonly #encoder: PacketEncoder;
  #scheduled = false;

  constructor(socket: Socket, magic: Magic) {
    this.#socket = socket;
    this.#encoder = new PacketEncoder(magic);
  }

  /** Bytes that the peer's side has not taken. */
  get pending(): number {
    return this.#encoder.length + this.#socket.writableLength;
  }

  /** Whether it is time to stop producing; `drain` of the socket says when to go on. */
  get isFull(): boolean {
    return this.#socket.writableNeedDrain;
  }

  send<N extends PacketName>(name: N, ...args: ArgumentValues<N>): void {
    this.#encoder.add(name, ...args);
    this.#schedule();
  }

  /** Sends bytes that are no packet. */
  sendBytes(bytes: Uint8Array): void {
    this.#encoder.addBytes(bytes);
    this.#schedule();
  }

  /** Hands the batch to the socket now. */
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

  // A tick that is set in a microtask runs when no promise reaction is left, and sooner than setImmediate, which
  // costs the event loop a turn of its own.
  readonly #afterReactions = (): void => process.nextTick(this.#flushScheduled);

  readonly #flushScheduled = (): void => {
    this.#scheduled = false;
    this.flush();
  };
}
