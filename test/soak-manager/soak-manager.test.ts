// Only in test:all: it kills managers and builders.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { soakManager } from './soak-manager.ts';

// `npm run soak:manager` runs longer.
test('each provider ends with exactly the wanted images after faults and kills', async (t) => {
  const plan = {
    diskimages: 4,
    providers: 2,
    generations: 3,
    kills: 5,
    faultRate: 0.1,
    maxLifetime: 4000,
    settlingTime: 240_000,
  };
  const { faults, calls, faultyCalls, managerKills, builderKills } = await soakManager(
    plan,
    () => {},
    t.signal,
  );
  assert.deepEqual(faults, []);
  t.diagnostic(
    `${calls} calls, ${faultyCalls} of them failed; ${managerKills} managers and ${builderKills} builders were killed`,
  );
  assert.ok(managerKills >= plan.kills && builderKills >= plan.kills, 'more was spared than killed');
});
