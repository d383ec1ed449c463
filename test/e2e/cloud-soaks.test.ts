// Only in test:all: it kills builders for minutes.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { soak } from '../soak/soak.ts';
import { CLOUDS, openClouds } from '../soak-clouds/clouds.ts';

// `npm run soak:clouds` runs longer, and also kills gearmand. The file starts early, because Azure’s waits
// for two minutes.
for (const name of Object.keys(CLOUDS)) {
  test(`a builder that is killed repeatedly uploads each image to ${name} exactly once`, async () => {
    const plan = { images: 10, maxLifetime: 700, builderKills: 4, gearmandKills: 0, settlingTime: 480_000 };
    const { faults, builderKills, done, uploads } = await soak(plan, await openClouds([name], 0.1));
    assert.deepEqual(faults, []);
    assert.equal(builderKills, plan.builderKills);
    assert.equal(done, uploads);
  });
}
