import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ImageCandidate } from '@nodepool-builder/image-builder';
import { imagesToPrune } from '../../src/commands/cleanup.ts';

const HOUR = 3_600_000;
const NOW = Date.parse('2026-05-10T00:00:00Z');

/** Images created in the order of the list, an hour apart, the last one an hour ago. */
function images(...built: readonly (number | undefined)[]): ImageCandidate[] {
  return built.map((hoursAgo, index) => ({
    externalId: String(index + 1),
    name: 'debian',
    imageName: 'debian',
    status: 'active',
    isUsable: true,
    isOwn: true,
    tags: [],
    properties: {},
    createdAt: new Date(NOW - (built.length - index) * HOUR),
    ...(hoursAgo !== undefined && { builtAt: new Date(NOW - hoursAgo * HOUR) }),
  }));
}

function pruned(candidates: readonly ImageCandidate[], keep: number, hours: number): string {
  return imagesToPrune(candidates, keep, hours * HOUR, NOW)
    .map(({ externalId }) => externalId)
    .join(' ');
}

describe('the images to prune', () => {
  it('the images to prune are all but the newest ones', () => {
    assert.equal(pruned(images(4, 3, 2, 1), 2, 0), '2 1');
    assert.equal(pruned(images(4, 3, 2, 1), 9, 0), '');
  });

  it('the images to prune are ordered by build time, or by creation time if one has no build time', () => {
    assert.equal(pruned(images(1, 2, 3), 1, 0), '2 3');
    assert.equal(pruned(images(1, undefined, 3), 1, 0), '2 1');
  });

  it('the images to prune are older than the limit, and never include a name’s newest image', () => {
    assert.equal(pruned(images(9, 8, 2, 1), 1, 5), '2 1');
    assert.equal(pruned(images(90, 80), 1, 5), '1');
    assert.equal(pruned(images(90), 1, 5), '');
  });

  it('the age of an image to prune counts from its creation if its build time is in the future', () => {
    assert.equal(pruned(images(-9, 2, 1), 1, 2), '2 1');
    assert.equal(pruned(images(-9, 2, 1), 1, 9), '');
  });

  it('the images to prune depend only on the number to keep if there is no age limit, whatever the clock says', () => {
    const ahead = images(-8, -9).map((image) => ({ ...image, createdAt: new Date(NOW + HOUR) }));
    assert.equal(pruned(ahead, 1, 0).split(' ').length, 1);
    assert.notEqual(pruned(ahead, 1, 0), '');
    assert.equal(pruned(ahead, 1, 1), '');
  });

  it('the images to prune are counted for each name', () => {
    const others = images(7, 6).map((image) => ({
      ...image,
      externalId: `o${image.externalId}`,
      imageName: 'other',
    }));
    assert.equal(pruned([...images(9, 8), ...others], 1, 0), '1 o1');
  });
});
