import { setTimeout as delay } from 'node:timers/promises';

/** Limits the total bandwidth of several streams. */
export class BandwidthLimit {
  readonly #bytesPerSecond: number;
  /** Time at which all bytes so far are due, in milliseconds of `performance.now()`. */
  #due = 0;

  /** @param bytesPerSecond greater than 0 */
  constructor(bytesPerSecond: number) {
    this.#bytesPerSecond = bytesPerSecond;
  }

  /** Waits until the next bytes may be sent. */
  async take(bytes: number, signal: AbortSignal): Promise<void> {
    const now = performance.now();
    const start = Math.max(this.#due, now);
    this.#due = start + (bytes / this.#bytesPerSecond) * 1000;
    if (start > now) await delay(start - now, undefined, { signal });
  }
}
