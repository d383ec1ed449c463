import type { Clock } from '@nodepool-builder/image-builder/plugin';

/** A clock whose sleeps end at once. */
export class ManualClock implements Clock {
  /** Lengths of the sleeps in milliseconds, in order. */
  readonly sleeps: number[] = [];
  #now = Date.now();

  now(): number {
    return this.#now;
  }

  pass(milliseconds: number): void {
    this.#now += milliseconds;
  }

  async sleep(milliseconds: number, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    this.sleeps.push(milliseconds);
    this.pass(milliseconds);
  }
}
