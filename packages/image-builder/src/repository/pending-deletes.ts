import { endedDeletes, forget } from './deletion.ts';
import type { Layout } from './layout.ts';

/** Milliseconds for which the end of a delete is remembered without an acknowledgement. */
export const DELETE_MEMORY = 600_000;

/**
 * Deletes whose end the job server has not acknowledged. If this process dies first, the job server assigns the job
 * again, for an image that no longer exists.
 */
export class PendingDeletes {
  readonly #layout: Layout;
  readonly #onForgotten: (imageId: string) => void;
  readonly #timers = new Map<string, NodeJS.Timeout>();

  constructor(layout: Layout, onForgotten: (imageId: string) => void) {
    this.#layout = layout;
    this.#onForgotten = onForgotten;
  }

  get ids(): ReadonlySet<string> {
    return new Set(this.#timers.keys());
  }

  has(imageId: string): boolean {
    return this.#timers.has(imageId);
  }

  /** Loads the deletes of the previous process. */
  async load(): Promise<void> {
    for (const imageId of await endedDeletes(this.#layout)) this.add(imageId);
  }

  add(imageId: string): void {
    clearTimeout(this.#timers.get(imageId));
    // A file that cannot be removed is harmless: this process decides from memory.
    const timer = setTimeout(() => void this.forget(imageId).catch(() => undefined), DELETE_MEMORY);
    this.#timers.set(imageId, timer.unref());
  }

  async forget(imageId: string): Promise<void> {
    clearTimeout(this.#timers.get(imageId));
    if (!this.#timers.delete(imageId)) return;
    this.#onForgotten(imageId);
    await forget(this.#layout, imageId);
  }

  close(): void {
    for (const timer of this.#timers.values()) clearTimeout(timer);
    this.#timers.clear();
  }
}
