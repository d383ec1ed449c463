// Only in test:all: it sends malformed packets for many seconds.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decoderTarget } from './decoder-target.ts';
import { fuzz } from './fuzz.ts';
import { FUZZ_TARGETS } from './targets.ts';

/** Packets for all targets together. `npm run fuzz` sends more. */
const PACKETS = 100_000;

/** A fixed seed, so that only a change of the sources can break this test. */
const SEED = 1;

for (const target of FUZZ_TARGETS) {
  test(`malformed packets cause no failure in the ${target.name}`, async () => {
    const { packets, mutated } = await fuzz(target, { packets: PACKETS * target.share, seed: SEED });
    assert.ok(packets >= PACKETS * target.share && mutated > packets / 3);
  });
}

test('a failure found by fuzzing is reported with a minimal session and the command that reproduces it', async () => {
  const { sessions } = await decoderTarget.open();
  const faulty = {
    sessions,
    run: async (session: readonly { name: string }[]) => {
      assert.ok(!session.some(({ name }) => name === 'GRAB_JOB'), 'it was grabbed');
    },
    close: async () => {},
  };
  const found = fuzz({ name: 'faulty', open: async () => faulty }, { packets: 10_000, seed: SEED });
  await assert.rejects(found, ({ message }: Error) => {
    const [fault = '', , ...packets] = message.split('\n');
    const again = packets.pop() ?? '';
    assert.match(fault, /^faulty: it was grabbed/);
    assert.ok(packets.some((packet) => packet.includes('GRAB_JOB: ')) && packets.length <= 2, message);
    assert.match(again, /^again: npm run fuzz -- --target faulty --seed \d+$/);
    return true;
  });
});
