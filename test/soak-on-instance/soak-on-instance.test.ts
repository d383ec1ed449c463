// Only in test:all: it kills a builder for a minute.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { moments } from './moments.ts';
import { soakOnInstance } from './soak-on-instance.ts';

test('the times of kills are spread over the run and follow from the seed', () => {
  const found = moments(20, 1);
  assert.deepEqual(
    found.map((moment) => Math.floor(moment * 20)).toSorted((one, other) => one - other),
    Array.from({ length: 20 }, (_, index) => index),
  );
  assert.deepEqual(moments(20, 1), found);
  assert.notDeepEqual(moments(20, 2), found);
});

// `npm run soak:on-instance` runs longer.
test('a killed builder leaves no orphaned machine, and a reassigned job succeeds', async (t) => {
  const kills = await soakOnInstance({ kills: 2, seed: 1 }, () => {}, t.signal);
  t.diagnostic(kills.map(({ phase, found }) => `${phase} (${found ?? 'forgotten'})`).join(', '));
  assert.ok(
    kills.some(({ found }) => found !== undefined),
    'each kill was beside the build',
  );
  assert.ok(
    kills.some(({ comesAgain }) => comesAgain),
    'no job was resubmitted',
  );
});
