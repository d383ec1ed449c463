import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ImageFilter } from '../../src/image-filter/image-filter.ts';
import { latestImage } from '../../src/image-filter/latest-image.ts';
import type { ImageCandidate } from '../../src/types.ts';

/** A usable image of our own, built on one day of May and created on another. */
function image(
  externalId: string,
  { builtOn, createdOn = 1, ...others }: Partial<ImageCandidate> & { builtOn?: number; createdOn?: number },
): ImageCandidate {
  return {
    externalId,
    name: 'debian-1',
    imageName: 'debian',
    status: 'active',
    isUsable: true,
    isOwn: true,
    owner: 'us',
    visibility: 'private',
    architecture: 'x86_64',
    tags: ['ci'],
    properties: { os: 'debian' },
    createdAt: new Date(Date.UTC(2026, 4, createdOn)),
    ...(builtOn !== undefined && { builtAt: new Date(Date.UTC(2026, 4, builtOn)) }),
    ...others,
  };
}

/** Returns the id of the latest image, and the reasons against the others. */
function choose(candidates: readonly ImageCandidate[], filter: ImageFilter = {}): unknown[] {
  const results = [candidates, candidates.toReversed()].map((order) => {
    const { latest, refused } = latestImage(order, filter);
    return [latest?.externalId, refused.map(({ candidate, reason }) => `${candidate.externalId}: ${reason}`)];
  });
  assert.deepEqual(results[0], results[1], 'the order of candidates makes no difference');
  return results[0] ?? [];
}

describe('the latest image', () => {
  test('the latest image is the one that was built last if all have a time', () => {
    const copied = image('a', { builtOn: 1, createdOn: 9 });
    assert.deepEqual(choose([copied, image('b', { builtOn: 2, createdOn: 3 })]), [
      'b',
      ['a: it was built earlier, at 2026-05-01T00:00:00.000Z'],
    ]);
  });

  test('the latest image is the one that was created last if one has no build time', () => {
    const candidates = [image('a', { builtOn: 9, createdOn: 3 }), image('b', { createdOn: 4 })];
    assert.deepEqual(choose(candidates), ['b', ['a: it was created earlier, at 2026-05-03T00:00:00.000Z']]);
  });

  test('the latest image does not depend on images that fail the filter', () => {
    const candidates = [image('a', { builtOn: 2, createdOn: 3 }), image('b', { builtOn: 1, createdOn: 4 })];
    const [latest] = choose([...candidates, image('c', { isUsable: false, status: 'queued' })]);
    assert.equal(latest, 'a');
  });

  test('the latest of equal images is chosen by the other time, then by their ids', () => {
    const createdAlike = [image('a', { builtOn: 2 }), image('b', { builtOn: 1 }), image('c', {})];
    assert.deepEqual(choose(createdAlike), [
      'a',
      ['b: it was built earlier, at 2026-05-01T00:00:00.000Z', 'c: its build time is unknown'],
    ]);
    const twice = [image('a', { builtOn: 1, createdOn: 2 }), image('b', { builtOn: 1, createdOn: 1 })];
    assert.deepEqual(choose(twice), ['a', ['b: it was created earlier, at 2026-05-01T00:00:00.000Z']]);
    assert.deepEqual(choose([image('a', { builtOn: 1 }), image('b', { builtOn: 1 })]), [
      'b',
      ['a: it has the same age, and its id is smaller'],
    ]);
  });
});

describe('an image', () => {
  const cases: readonly [what: string, Partial<ImageCandidate>, ImageFilter, reason: string][] = [
    ['that is pending', { isUsable: false, status: 'queued' }, {}, 'it is queued'],
    ['with another owner', { isOwn: false, owner: 'them' }, {}, 'its owner is them, not self'],
    [
      'of a third owner',
      { isOwn: false, owner: 'it' },
      { owner: ['self', 'them'] },
      'its owner is it, not self or them',
    ],
    [
      'with our own owner where another is trusted',
      {},
      { owner: ['them'] },
      'its owner is self, us, not them',
    ],
    ['for other machines', {}, { architecture: ['aarch64'] }, 'its architecture is x86_64, not aarch64'],
    ['without a tag', { tags: [] }, { tag: ['ci', 'qa'] }, 'its tag is unknown, not ci or qa'],
    [
      'that others can see',
      { visibility: 'public' },
      { visibility: ['private'] },
      'its visibility is public, not private',
    ],
    [
      'with another property value',
      {},
      { properties: new Map([['os', ['bsd']]]) },
      'its property os is debian, not bsd',
    ],
    [
      'without a property',
      {},
      { properties: new Map([['toString', ['x']]]) },
      'its property toString is unknown, not x',
    ],
    [
      'that is too old',
      { builtAt: new Date('2026-04-01') },
      { createdAfter: new Date('2026-04-02') },
      'it was made at 2026-04-01T00:00:00.000Z, before 2026-04-02T00:00:00.000Z',
    ],
  ];
  for (const [what, properties, filter, reason] of cases) {
    test(`an image ${what} does not pass the filter, and the reason is reported`, () => {
      assert.deepEqual(choose([image('a', properties)], filter), [undefined, [`a: ${reason}`]]);
    });
  }

  test('an image with one of the values for each key passes the filter', () => {
    const filter = {
      name: ['ubuntu-*', 'debian-?'],
      imageName: ['debian'],
      owner: ['them', 'self'],
      tag: ['qa', 'ci'],
      architecture: ['x86_64'],
      visibility: ['private'],
      properties: new Map([['os', ['debian']]]),
      createdAfter: new Date(Date.UTC(2026, 4, 1)),
    };
    assert.deepEqual(choose([image('a', {})], filter), ['a', []]);
  });

  test('an image passes if the filter has another name for its architecture', () => {
    for (const architecture of ['amd64', 'x64', 'x86_64']) {
      assert.deepEqual(choose([image('a', {})], { architecture: [architecture] }), ['a', []]);
      assert.deepEqual(choose([image('a', { architecture })], { architecture: ['x86_64'] }), ['a', []]);
    }
    assert.deepEqual(choose([image('a', { architecture: 'arm64' })], { architecture: ['aarch64'] }), [
      'a',
      [],
    ]);
  });

  test('another owner’s image passes if the filter names the owner', () => {
    assert.deepEqual(choose([image('a', { isOwn: false, owner: 'them' })], { owner: ['them'] }), ['a', []]);
  });

  test('an image with another name is not reported as rejected', () => {
    assert.deepEqual(choose([image('a', {})], { name: ['Debian-*'] }), [undefined, []]);
    assert.deepEqual(choose([image('a', {})], { imageName: ['deb*'] }), [undefined, []]);
  });
});
