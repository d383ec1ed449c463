/** The job slots that a worker's connections share. Each outstanding grab and each running job takes one. */
export class Slots {
  readonly #size: number;
  readonly #onFree: () => void;
  #taken = 0;
  #emptied: (() => void) | undefined;

  constructor(size: number, onFree: () => void) {
    this.#size = size;
    this.#onFree = onFree;
  }

  get free(): number {
    return this.#size - this.#taken;
  }

  get areAllFree(): boolean {
    return this.#taken === 0;
  }

  take(): void {
    this.#taken += 1;
  }

  give(): void {
    this.#taken -= 1;
    if (this.areAllFree) this.#emptied?.();
    this.#onFree();
  }

  /** Resolves when all slots are free. Only one caller may wait at a time. */
  async allFree(): Promise<void> {
    if (this.areAllFree) return;
    await new Promise<void>((resolve) => {
      this.#emptied = resolve;
    });
  }
}
