/** Images that no builder offers, and since when. Times are milliseconds on a clock that is never set. */
export class Absences {
  #since = new Map<string, number>();

  get all(): ReadonlyMap<string, number> {
    return this.#since;
  }

  since(imageId: string): number | undefined {
    return this.#since.get(imageId);
  }

  /** Compares what ought to be there with what is offered. */
  look(expected: Iterable<string>, offered: ReadonlySet<string>, now: number): void {
    const since = new Map<string, number>();
    for (const id of expected) if (!offered.has(id)) since.set(id, this.#since.get(id) ?? now);
    this.#since = since;
  }
}
