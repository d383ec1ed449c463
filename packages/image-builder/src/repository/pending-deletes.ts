import { endedDeletes, forget } from './deletion.ts';
import type { Layout } from './layout.ts';

/** Milliseconds that the end of a delete is remembered if nobody says that it may be forgotten. */
export const DELETE_MEMORY = 600_000;

/**
 * The deletes that have ended without the job server having acknowledged it: when this program dies before that,
 * the job server hands the same job out again, for an image that is no more.
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

  /** Takes over those of the process before this one. */
  async load(): Promise<void> {
    for (const imageId of await endedDeletes(this.#layout)) this.add(imageId);
  }

  add(imageId: string): void {
    clearTimeout(this.#timers.get(imageId));
    // That the file cannot be removed is no harm: the memory of this process is what counts.
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
