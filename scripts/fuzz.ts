/**
 * Sends hostile packets to gearman-node: `npm run fuzz -- [--packets N] [--seed N] [--target NAME]`.
 *
 * The seed is random unless given, and is printed. At the first error, exits with 1 and prints a small session that
 * reproduces it.
 */
import { randomInt } from 'node:crypto';
import { parseArgs } from 'node:util';
import { fuzz } from '../test/fuzz/fuzz.ts';
import { FUZZ_TARGETS } from '../test/fuzz/targets.ts';

/** Interval of progress lines, in milliseconds. */
const INTERVAL = 5000;

try {
  const { values } = parseArgs({
    options: {
      packets: { type: 'string', default: '1000000' },
      seed: { type: 'string', default: String(randomInt(2 ** 31)) },
      target: { type: 'string' },
    },
  });
  await fuzzAll(natural('packets', values.packets), natural('seed', values.seed), values.target);
} catch (error) {
  console.error(`fuzz: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}

async function fuzzAll(packets: number, seed: number, only: string | undefined): Promise<void> {
  const targets = FUZZ_TARGETS.filter(({ name }) => only === undefined || name === only);
  if (targets.length === 0) {
    throw new Error(`no target "${only}"; choose one of: ${FUZZ_TARGETS.map(({ name }) => name).join(', ')}`);
  }
  console.log(`seed ${seed}`);
  for (const target of targets) {
    const share = targets.length === 1 ? packets : Math.ceil(packets * target.share);
    const start = performance.now();
    const report = await fuzz(target, { packets: share, seed, progress: progressOf(target.name, share) });
    const seconds = ((performance.now() - start) / 1000).toFixed(1);
    const { sessions, mutated, growth } = report;
    console.log(
      `${target.name}: ${report.packets} packets, ${mutated} of them spoilt, in ${sessions} sessions: ` +
        `no fault, ${(growth / 2 ** 20).toFixed(1)} MiB more in use (${seconds} s)`,
    );
  }
}

function progressOf(name: string, share: number): (packets: number) => void {
  let last = performance.now();
  return (packets) => {
    if (performance.now() - last < INTERVAL) return;
    last = performance.now();
    console.log(`  ${name}: ${packets} of ${share} packets`);
  };
}

function natural(option: string, text: string): number {
  if (!/^\d+$/.test(text)) throw new Error(`--${option} takes a whole number, not "${text}"`);
  return Number(text);
}
