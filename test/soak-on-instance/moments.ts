/**
 * Moments of chance, as parts of a whole: one in each of `count` equal stretches of it, in an order of chance. The same
 * seed gives the same.
 */
export function moments(count: number, seed: number): number[] {
  const next = generator(seed);
  const inOrder = Array.from({ length: count }, (_, index) => (index + next()) / count);
  return inOrder
    .map((moment) => ({ moment, place: next() }))
    .toSorted((one, other) => one.place - other.place)
    .map(({ moment }) => moment);
}

/** Numbers from 0 to 1 (mulberry32). */
function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
