import type { Range } from './digests.ts';

/** Bytes of a slot: smaller ones need more messages, larger ones do not fit in the processor's cache. */
const SLOT_SIZE = 512 * 1024;

/** One on the wire, one being filled, and four for threads that lag behind. */
const SLOTS = 6;

/** Bytes of all slots. */
export const RING_SIZE: number = SLOTS * SLOT_SIZE;

/** A part of the memory with one user. */
export interface Slot extends Range {
  readonly bytes: Buffer;
}

/** A memory of {@link RING_SIZE}, split into slots. Each has one user at a time, in the order of the requests. */
export class SlotRing {
  readonly #free: Slot[];
  readonly #waiting: ((slot: Slot) => void)[] = [];

  constructor(memory: ArrayBufferLike) {
    this.#free = Array.from({ length: SLOTS }, (_, index) => {
      const begin = index * SLOT_SIZE;
      return { begin, end: begin + SLOT_SIZE, bytes: Buffer.from(memory, begin, SLOT_SIZE) };
    });
  }

  /** Waits for a free slot. */
  async take(): Promise<Slot> {
    return this.#free.pop() ?? (await new Promise((resolve) => void this.#waiting.push(resolve)));
  }

  /** Returns a slot. */
  give(slot: Slot): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free.push(slot);
    else next(slot);
  }
}
