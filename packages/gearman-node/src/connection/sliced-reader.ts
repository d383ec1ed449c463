import type { Socket } from 'node:net';
import type { FlushGroup } from './flush-group.ts';

/** Bytes that are processed before the clock is checked. */
const PIECE = 4 * 1024;

/** Milliseconds after which other connections are served. */
const SLICE = 0.5;

/** Size of a read that another one may follow at once: Node reads up to 32 times before it serves other sockets. */
const FULL_READ = 64 * 1024;

/** Reads from a socket in slices. Other connections are served between two slices of a peer that sends much. */
export class SlicedReader {
  readonly #socket: Socket;
  readonly #group: FlushGroup;
  readonly #onBytes: (bytes: Buffer) => void;
  #isPaused = false;
  /**
   * True while the socket is paused until a later turn of the event loop. That turn reads the rest of the last chunk.
   */
  #isWaiting = false;

  constructor(socket: Socket, group: FlushGroup, onBytes: (bytes: Buffer) => void) {
    this.#socket = socket;
    this.#group = group;
    this.#onBytes = onBytes;
    socket.on('data', (chunk: Buffer) => group.read(this.#read, chunk));
    // The stream's own path from here to the event takes a third of the CPU time of a small packet.
    const push = socket.push.bind(socket);
    socket.push = (chunk: Buffer | null, encoding?: BufferEncoding) => {
      if (chunk === null || socket.readableFlowing !== true || socket.readableLength > 0) {
        return push(chunk, encoding);
      }
      // One turn may read from hundreds of sockets. A slice for each of them would take too long.
      if (chunk.length > PIECE) this.#postpone(chunk);
      else group.read(this.#read, chunk);
      return true;
    };
  }

  /** Stops reading, which applies back-pressure to the peer. */
  pause(): void {
    this.#isPaused = true;
    this.#socket.pause();
  }

  resume(): void {
    this.#isPaused = false;
    if (!this.#isWaiting) this.#socket.resume();
  }

  readonly #read = (chunk: Buffer): void => {
    if (chunk.length <= PIECE) {
      this.#onBytes(chunk);
      return;
    }
    const end = performance.now() + SLICE;
    let at = 0;
    do {
      this.#onBytes(chunk.subarray(at, at + PIECE));
      at += PIECE;
    } while (at < chunk.length && !this.#isPaused && performance.now() < end);
    if (at < chunk.length || chunk.length >= FULL_READ) this.#postpone(chunk.subarray(at));
  };

  /** Returns the rest to the stream, which emits its end only afterwards, and resumes in a later turn. */
  #postpone(rest: Buffer): void {
    this.#socket.pause();
    if (rest.length > 0) this.#socket.unshift(rest);
    this.#isWaiting = true;
    void this.#continue(); // never rejects
  }

  async #continue(): Promise<void> {
    await this.#group.turns.next();
    this.#isWaiting = false;
    if (this.#isPaused) return;
    // Emits the rest in this turn. A resumed stream would emit it in a later one, which other connections may share.
    this.#socket.read();
    if (!this.#isWaiting && !this.#isPaused) this.#socket.resume();
  }
}
