import { setTimeout as delay } from 'node:timers/promises';

/** Holds back streams so that all of them together carry at most so many bytes a second. */
export class BandwidthLimit {
  readonly #bytesPerSecond: number;
  /** When the bytes that were let through so far are due, in milliseconds of `performance.now()`. */
  #due = 0;

  /** @param bytesPerSecond above 0. */
  constructor(bytesPerSecond: number) {
    this.#bytesPerSecond = bytesPerSecond;
  }

  /** Resolves when this many more bytes may go. */
  async take(bytes: number, signal: AbortSignal): Promise<void> {
    const now = performance.now();
    const start = Math.max(this.#due, now);
    this.#due = start + (bytes / this.#bytesPerSecond) * 1000;
    if (start > now) await delay(start - now, undefined, { signal });
  }
}
