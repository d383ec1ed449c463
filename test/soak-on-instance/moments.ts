import { randomNumbers } from '../fixtures/random-numbers.ts';

/**
 * Returns random moments as fractions: one in each of `count` equal intervals, in random order. The same seed returns
 * the same moments.
 */
export function moments(count: number, seed: number): number[] {
  const next = randomNumbers(seed);
  const inOrder = Array.from({ length: count }, (_, index) => (index + next()) / count);
  return inOrder
    .map((moment) => ({ moment, place: next() }))
    .toSorted((one, other) => one.place - other.place)
    .map(({ moment }) => moment);
}
