import type { Socket } from 'node:net';
import { PacketEncoder } from '../codec/encoder.ts';
import type { Magic } from '../codec/packet.ts';
import type { ArgumentValues, PacketName } from '../packets.ts';

/** Beyond this the batch does not wait for the end of the turn. */
const FULL_BATCH = 64 * 1024;

/** Writes packets to a socket: all of one turn of the event loop leave in one system call. */
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
    this.#socket.cork();
    for (const part of parts) this.#socket.write(part);
    this.#socket.uncork();
  }

  #schedule(): void {
    if (this.#encoder.length >= FULL_BATCH) {
      this.flush();
    } else if (!this.#scheduled) {
      this.#scheduled = true;
      // After I/O of this turn and all that it settled, unlike nextTick, which runs before promise reactions.
      setImmediate(() => {
        this.#scheduled = false;
        this.flush();
      });
    }
  }
}
