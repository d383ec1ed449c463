import type { Socket } from 'node:net';
import { PacketEncoder } from '../codec/encoder.ts';
import type { Magic } from '../codec/packet.ts';
import type { ArgumentValues, PacketName } from '../packets.ts';

/** Minimum size of a batch that is written at once. */
const FULL_BATCH = 64 * 1024;

/**
 * Writes packets to a socket. All packets of one callback of the event loop leave in one system call. Does nothing on a
 * closed socket.
 */
export class BatchedWriter {
  readonly #socket: Socket;
  readonly #encoder: PacketEncoder;
  readonly #afterCallback: (flush: () => void) => void;
  #scheduled = false;
  #isHeld = false;

  /** @param schedule calls its argument later, to write the batch. Default: after all promise reactions. */
  constructor(socket: Socket, magic: Magic, schedule: (flush: () => void) => void = afterReactions) {
    this.#socket = socket;
    this.#afterCallback = schedule;
    this.#encoder = new PacketEncoder(magic);
  }

  /** Number of bytes that the operating system has not accepted yet. */
  get pendingBytes(): number {
    return this.#encoder.length + this.#socket.writableLength;
  }

  /** True if the producer should stop until the socket emits `drain`. */
  get isFull(): boolean {
    return this.#socket.writableNeedDrain;
  }

  /** Sends a packet after this callback and its promise reactions. */
  send<N extends PacketName>(name: N, ...args: ArgumentValues<N>): void {
    this.#encoder.add(name, ...args);
    this.#schedule();
  }

  /** Sends a packet whose arguments are already joined: see {@link PacketEncoder.addJoined}. */
  sendJoined(name: PacketName, text: string, payload?: Uint8Array): void {
    this.#encoder.addJoined(name, text, payload);
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
    if (this.#socket.writableLength === 0) this.#encoder.reuse();
  }

  /** Writes only full batches until {@link release}. */
  hold(): void {
    this.#isHeld = true;
  }

  /** Writes the batch that was held. */
  release(): void {
    this.#isHeld = false;
    if (this.#encoder.length > 0) this.flush();
  }

  #schedule(): void {
    if (this.#encoder.length >= FULL_BATCH) {
      this.flush();
    } else if (!this.#isHeld && !this.#scheduled) {
      this.#scheduled = true;
      this.#afterCallback(this.#flushScheduled);
    }
  }

  readonly #flushScheduled = (): void => {
    this.#scheduled = false;
    this.flush();
  };
}

/**
 * Runs three rounds of promise reactions later, because functions that await the same packet take one to three.
 * process.nextTick would run after all rounds, but costs more than all other work for a packet.
 */
function afterReactions(flush: () => void): void {
  void RESOLVED.then(wait).then(wait).then(flush);
}

/** A resolved promise, whose reactions cost a fraction of queueMicrotask. */
const RESOLVED: Promise<void> = Promise.resolve();

const wait = (): void => {};
