/**
 * What was seen, and when first: something counts only when it is seen again after an interval. What is missed
 * once begins anew.
 */
export class Sightings {
  readonly #interval: number;
  #firstSeen = new Map<string, number>();

  /** @param interval milliseconds */
  constructor(interval: number) {
    this.#interval = interval;
  }

  /** Takes what is seen now; returns those that were seen at least the interval ago, and at each look since. */
  look(keys: Iterable<string>, now: number): ReadonlySet<string> {
    this.#firstSeen = new Map([...keys].map((key) => [key, this.#firstSeen.get(key) ?? now]));
    return new Set(
      [...this.#firstSeen].filter(([, first]) => now - first >= this.#interval).map(([key]) => key),
    );
  }
}
