import type { Progress } from '@nodepool-builder/image-builder';

/** Least time between two calls, in milliseconds. */
const INTERVAL = 200;

/** Tells how many bytes of an upload have gone out; it does not go back when a second try begins anew. */
export class ByteProgress {
  readonly #total: number;
  readonly #listener: ((progress: Progress) => void) | undefined;
  #told = 0;
  #nextAt = 0;

  constructor(total: number, listener: ((progress: Progress) => void) | undefined) {
    this.#total = total;
    this.#listener = listener;
  }

  /** So many bytes of the file have gone out in this try. The last ones wait for {@link end}. */
  report(done: number): void {
    const now = performance.now();
    if (done <= this.#told || done >= this.#total || now < this.#nextAt) return;
    this.#told = done;
    this.#nextAt = now + INTERVAL;
    this.#listener?.({ done, total: this.#total });
  }

  /** The image is there. */
  end(): void {
    this.#listener?.({ done: this.#total, total: this.#total });
  }
}
