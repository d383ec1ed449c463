/** Bytes of a block: what is kept of a fetch that is cut short counts in whole blocks. */
export const BLOCK_SIZE: number = 128 * 1024;

/** Blocks that follow each other, the end not included. */
export interface Run {
  readonly begin: number;
  readonly end: number;
}

/** Which blocks of an object are there, and which are being fetched. */
export class Blocks {
  readonly #present: Set<number>;
  readonly #claimed = new Set<number>();
  readonly #waiting = new Map<number, () => void>();
  /** All blocks before this one are present. */
  #prefix = 0;

  constructor(present: Iterable<number> = []) {
    this.#present = new Set(present);
  }

  /** How many are there. */
  get count(): number {
    return this.#present.size;
  }

  /** Takes a block for present. */
  add(index: number): void {
    this.#present.add(index);
    this.#waiting.get(index)?.();
    this.#waiting.delete(index);
  }

  /** Waits until a block is present. */
  async wait(index: number): Promise<void> {
    if (this.#present.has(index)) return;
    await new Promise<void>((resolve) => void this.#waiting.set(index, resolve));
  }

  /** The first blocks, of `count`, that are neither there nor claimed, `most` of them; undefined if there are none. */
  claim(count: number, most: number): Run | undefined {
    while (this.#present.has(this.#prefix)) this.#prefix += 1;
    let begin = this.#prefix;
    while (begin < count && !this.#isFree(begin)) begin += 1;
    if (begin >= count) return undefined;
    let end = begin;
    while (end < count && end - begin < most && this.#isFree(end)) {
      this.#claimed.add(end);
      end += 1;
    }
    return { begin, end };
  }

  /** Gives up the claim of what did not come. */
  release({ begin, end }: Run): void {
    for (let index = begin; index < end; index += 1) this.#claimed.delete(index);
  }

  #isFree(index: number): boolean {
    return !this.#present.has(index) && !this.#claimed.has(index);
  }
}
