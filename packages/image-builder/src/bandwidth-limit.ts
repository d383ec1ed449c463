import { setTimeout as delay } from 'node:timers/promises';

/**
 * Delay in milliseconds that a stream catches up on. Timers wake it up to two milliseconds late, and a piece at 100
 * MB/s takes less than one.
 */
const LATENESS = 100;

/** Limits the total bandwidth of several streams. */
export class BandwidthLimit {
  readonly #bytesPerSecond: number;
  /** Time at which all bytes so far are due, in milliseconds of `performance.now()`. */
  #due = Number.NEGATIVE_INFINITY;

  /** @param bytesPerSecond greater than 0 */
  constructor(bytesPerSecond: number) {
    this.#bytesPerSecond = bytesPerSecond;
  }

  /** Waits until the next bytes may be sent. */
  async take(bytes: number, signal: AbortSignal): Promise<void> {
    const now = performance.now();
    const start = now - this.#due > LATENESS ? now : this.#due;
    this.#due = start + (bytes / this.#bytesPerSecond) * 1000;
    if (start > now) await delay(start - now, undefined, { signal });
  }
}

interface Meter {
  /** Called with the length of each piece before it is yielded. */
  readonly onBytes: (bytes: number) => void;
  readonly limit: BandwidthLimit | undefined;
  readonly signal: AbortSignal;
}

/** Size of a piece under a limit, in bytes. At 640 kB/s it takes a tenth of a second. */
const LIMITED_PIECE = 64 * 1024;

/** Yields the pieces, counted and at the limited bandwidth. */
export async function* metered(
  pieces: AsyncIterable<Buffer>,
  { onBytes, limit, signal }: Meter,
): AsyncGenerator<Buffer, void, undefined> {
  for await (const piece of pieces) {
    const step = limit === undefined ? piece.length : LIMITED_PIECE;
    for (let start = 0; start < piece.length; start += step) {
      const part = piece.subarray(start, start + step);
      await limit?.take(part.length, signal);
      onBytes(part.length);
      yield part;
    }
  }
}
