import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { newestBuildFirst } from '../src/build-order.ts';

const NOW = Date.UTC(2026, 4, 10);
const day = (number: number): number => Date.UTC(2026, 4, number);
const AHEAD = Date.UTC(2099, 0, 1);

type Entry = readonly [imageId: string, builtAt?: number];

/** Sorts image-ids, newest first. Checks that the order of the entries does not matter. */
function order(entries: readonly Entry[], now = NOW): string[] {
  const sort = (list: readonly Entry[]): string[] =>
    newestBuildFirst(list, ([imageId, builtAt]) => ({ imageId, builtAt }), now).map(([imageId]) => imageId);
  const sorted = sort(entries);
  assert.deepEqual(sort(entries.toReversed()), sorted);
  return sorted;
}

const manager = (number: number): string => `debian-${String(number).padStart(10, '0')}-k7f3q2xa`;

describe('images by build', () => {
  it('images are in the order of their build dates', () => {
    assert.deepEqual(order([['a', day(2)], ['b', day(3)], ['c', day(1)], ['d']]), ['b', 'a', 'c', 'd']);
  });

  it('images from one store are in the order of their numbers when a clock ran ahead', () => {
    const entries: Entry[] = [
      [manager(4), day(8)],
      [manager(5), AHEAD],
      [manager(6), day(9)],
    ];
    assert.deepEqual(order(entries), [manager(6), manager(5), manager(4)]);
    assert.deepEqual(order(entries.slice(0, 2)), [manager(5), manager(4)]);
  });

  it('images from one store are in the order of their numbers when a clock fell behind', () => {
    assert.deepEqual(
      order([
        ['9', day(8)],
        ['10', 0],
      ]),
      ['10', '9'],
    );
  });

  it('images with a date in the future and no number are the oldest', () => {
    assert.deepEqual(
      order([
        ['a', AHEAD],
        ['b', day(1)],
      ]),
      ['b', 'a'],
    );
  });

  it('images are in the order of their dates when this machine’s clock is far behind', () => {
    const entries: Entry[] = [
      ['a', day(2)],
      ['b', day(3)],
      [manager(1), day(4)],
      [manager(2), day(5)],
    ];
    assert.deepEqual(order(entries, 1000), [manager(2), manager(1), 'b', 'a']);
  });
});
