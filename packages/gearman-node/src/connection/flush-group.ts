import { SharedTurns } from './shared-turns.ts';

/**
 * The connections of a server. The packets that a chunk from one of them causes are written at the end of the chunk, to
 * all of them. A tick or a promise reaction for each write would cost as much as the packets themselves.
 */
export class FlushGroup {
  readonly turns: SharedTurns = new SharedTurns();
  #flushes: (() => void)[] = [];
  #isReading = false;

  /** Calls `flush` at the end of the chunk or, between chunks, at the end of the current callback. */
  readonly schedule = (flush: () => void): void => {
    if (this.#flushes.push(flush) === 1 && !this.#isReading) process.nextTick(this.#flush);
  };

  /** Processes a chunk, then writes. `process` must not throw. */
  read(process: (chunk: Buffer) => void, chunk: Buffer): void {
    this.#isReading = true;
    process(chunk);
    this.#isReading = false;
    this.#flush();
  }

  readonly #flush = (): void => {
    const flushes = this.#flushes;
    if (flushes.length === 0) return;
    this.#flushes = [];
    for (const flush of flushes) flush();
  };
}
