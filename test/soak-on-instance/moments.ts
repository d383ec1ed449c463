import { randomNumbers } from '../fixtures/random-numbers.ts';

/**
 * Random moments, as parts of a whole: one in each of `count` equal stretches of it, in random order. The same seed
 * gives the same moments.
 */
export function moments(count: number, seed: number): number[] {
  const next = randomNumbers(seed);
  const inOrder = Array.from({ length: count }, (_, index) => (index + next()) / count);
  return inOrder
    .map((moment) => ({ moment, place: next() }))
    .toSorted((one, other) => one.place - other.place)
    .map(({ moment }) => moment);
}
