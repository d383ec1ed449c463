import { test } from 'node:test';
import { fuzz } from './fuzz.ts';
import { FUZZ_TARGETS } from './targets.ts';

/** For all targets together; `npm run fuzz` throws more. */
const PACKETS = 100_000;

/** The same packets in each run: a change that breaks this test is what broke it. */
const SEED = 1;

for (const target of FUZZ_TARGETS) {
  test(`hostile packets find no fault in the ${target.name}`, async () => {
    await fuzz(target, { packets: PACKETS * target.share, seed: SEED });
  });
}
