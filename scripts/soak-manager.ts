/**
 * Shows that the manager ends with exactly the images that are wanted: `npm run soak:manager -- [--images N]
 * [--providers N] [--generations N]`. Everything is built and uploaded several times over, against doubles of builders
 * and clouds, while one call in ten fails and two builders and two managers are killed every few seconds. Prints
 * figures; ends with 1 if anything is not as it is wanted, or if a provider ever lost its last good image.
 */
import { delimiter } from 'node:path';
import { parseArgs } from 'node:util';
import { type ManagerSoakProgress, soakManager } from '../test/soak-manager/soak-manager.ts';

/** Between two lines of progress, in milliseconds. */
const INTERVAL = 5000;

// gearmand lies where Debian lets only root look for commands.
process.env.PATH = [process.env.PATH, '/usr/sbin', '/sbin'].join(delimiter);

const interrupted = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => interrupted.abort(new Error(`stopped by ${signal}`)));
}

try {
  const { values } = parseArgs({
    options: {
      images: { type: 'string', default: '100' },
      providers: { type: 'string', default: '5' },
      generations: { type: 'string', default: '3' },
    },
  });
  const [diskimages, providers, generations] = [values.images, values.providers, values.generations].map(
    wholeNumber,
  ) as [number, number, number];
  await main(diskimages, providers, generations);
} catch (error) {
  const reason: unknown = interrupted.signal.aborted ? interrupted.signal.reason : error;
  console.error(`soak:manager: ${reason instanceof Error ? reason.message : String(reason)}`);
  process.exitCode = 1;
}

function wholeNumber(text: string): number {
  if (/^[1-9]\d*$/.test(text)) return Number(text);
  throw new Error(`options take whole numbers from 1 on, not "${text}"`);
}

async function main(diskimages: number, providers: number, generations: number): Promise<void> {
  const plan = {
    diskimages,
    providers,
    generations,
    faultRate: 0.1,
    longestLife: 10_000,
    settlingTime: 300_000,
  };
  const { faults, settlingSeconds, ...all } = await soakManager(plan, printNowAndThen(), interrupted.signal);
  console.log(describe(all));
  console.log(`all was as it should be ${settlingSeconds.toFixed(0)} s later`);
  for (const fault of faults) console.log(`  ${fault}`);
  console.log(
    faults.length === 0
      ? 'exactly the wanted images are everywhere, no job is left, and no provider ever lost its last good image'
      : `${faults.length} faults`,
  );
  if (faults.length > 0) process.exitCode = 1;
}

function printNowAndThen(): (progress: ManagerSoakProgress) => void {
  let last = performance.now();
  return (progress) => {
    if (performance.now() - last < INTERVAL) return;
    last = performance.now();
    console.log(`  ${describe(progress)}`);
  };
}

function describe({ generation, done, uploads, seconds, ...counts }: ManagerSoakProgress): string {
  return (
    `generation ${generation}: ${done} of ${uploads} uploads, ${seconds.toFixed(0)} s; ` +
    `${counts.faultyCalls} of ${counts.calls} calls failed; ` +
    `${counts.builderKills} builders and ${counts.managerKills} managers were killed`
  );
}
