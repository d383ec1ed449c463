/**
 * Tracks work that adds something to images, such as a document in `<image-id>.d`. The deletion of an image waits for
 * it.
 */
export class Additions {
  readonly #running = new Map<string, Set<Promise<unknown>>>();

  async run<T>(imageId: string, work: () => Promise<T>): Promise<T> {
    const running = this.#running.get(imageId) ?? new Set();
    this.#running.set(imageId, running);
    const result = work();
    running.add(result);
    try {
      return await result;
    } finally {
      running.delete(result);
      if (running.size === 0) this.#running.delete(imageId);
    }
  }

  /** Waits for all work on an image that has already started. */
  async settled(imageId: string): Promise<void> {
    const running = this.#running.get(imageId);
    if (running !== undefined) await Promise.allSettled(running);
  }
}
