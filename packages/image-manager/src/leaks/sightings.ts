/** What was seen at one look and at the next. What is missed once begins anew. */
export class Sightings {
  #seen: ReadonlySet<string> = new Set();

  /** Takes what is seen now; returns what was seen at the look before, too. */
  look(keys: Iterable<string>): ReadonlySet<string> {
    const before = this.#seen;
    this.#seen = new Set(keys);
    return new Set([...this.#seen].filter((key) => before.has(key)));
  }
}
