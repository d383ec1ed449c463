/**
 * Shows that no image is lost or doubled: `npm run soak -- [--images N]`. Uploads images to three projects of a
 * real Glance, over a real gearmand, while the builder is killed every few seconds and gearmand twice; then looks what
 * is there. Prints figures; ends with 1 if anything is not there exactly once.
 */
import { delimiter } from 'node:path';
import { parseArgs } from 'node:util';
import { type SoakProgress, soak } from '../test/soak/soak.ts';

/** Between two lines of progress, in milliseconds. */
const INTERVAL = 5000;

// gearmand lies where Debian lets only root look for commands.
process.env.PATH = [process.env.PATH, '/usr/sbin', '/sbin'].join(delimiter);

const interrupted = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => interrupted.abort(new Error(`stopped by ${signal}`)));
}

try {
  const { values } = parseArgs({ options: { images: { type: 'string', default: '200' } } });
  if (!/^[1-9]\d*$/.test(values.images)) {
    throw new Error(`--images takes a whole number from 1 on, not "${values.images}"`);
  }
  await main(Number(values.images));
} catch (error) {
  const reason: unknown = interrupted.signal.aborted ? interrupted.signal.reason : error;
  console.error(`soak: ${reason instanceof Error ? reason.message : String(reason)}`);
  process.exitCode = 1;
}

async function main(images: number): Promise<void> {
  const plan = {
    images,
    longestLife: 8000,
    builderKills: Number.POSITIVE_INFINITY,
    gearmandKills: 2,
    // What a crash left is removed two minutes later, and it may take a while.
    settlingTime: 240_000,
  };
  const { faults, settlingSeconds, ...all } = await soak(plan, printNowAndThen(), interrupted.signal);
  console.log(describe(all));
  console.log(`the clouds and the queue settled in ${settlingSeconds.toFixed(0)} s more`);
  for (const fault of faults) console.log(`  ${fault}`);
  console.log(
    faults.length === 0
      ? 'each image is in each provider exactly once, nothing else is there, and no job is left'
      : `${faults.length} faults`,
  );
  if (faults.length > 0) process.exitCode = 1;
}

function printNowAndThen(): (progress: SoakProgress) => void {
  let last = performance.now();
  return (progress) => {
    if (performance.now() - last < INTERVAL) return;
    last = performance.now();
    console.log(`  ${describe(progress)}`);
  };
}

function describe({ done, uploads, submitted, lost, failed, ...kills }: SoakProgress): string {
  return (
    `${done} of ${uploads} uploads in ${kills.seconds.toFixed(0)} s; builder killed ${kills.builderKills} times, ` +
    `gearmand ${kills.gearmandKills} times; ${submitted} jobs, ${lost} again as the server was lost, ` +
    `${failed} again as they failed`
  );
}
