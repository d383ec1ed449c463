// Only in test:all: it kills builders and gearmand.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openStackClouds } from './openstack-clouds.ts';
import { soak } from './soak.ts';

// `npm run soak` runs longer, and also kills gearmand, whose orphans are removed only after two minutes.
test('a builder that is killed repeatedly uploads each image to each provider exactly once', async () => {
  const plan = { images: 8, maxLifetime: 1000, builderKills: 4, gearmandKills: 0, settlingTime: 240_000 };
  const { faults, builderKills, submitted, uploads } = await soak(plan, await openStackClouds(3));
  assert.deepEqual(faults, []);
  assert.equal(builderKills, plan.builderKills);
  assert.equal(submitted, uploads);
});
