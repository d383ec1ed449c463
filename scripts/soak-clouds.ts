/**
 * Shows that no image is lost or duplicated in any kind of cloud: `npm run soak:clouds -- [--images N] [CLOUD...]`.
 * Uploads images to a double of each cloud, over a real gearmand, while one request in ten fails, the builder is killed
 * every few seconds, and gearmand twice. Then counts everything in the clouds. Prints figures, and exits with 1 unless
 * each image exists exactly once and nothing else exists.
 */
import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { soak } from '../test/soak/soak.ts';
import { CLOUDS, openClouds } from '../test/soak-clouds/clouds.ts';
import { describeUploads, printNowAndThen, runSoak } from './soak/run-soak.ts';

const FAULT_RATE = 0.1;

async function keepLog(lines: readonly string[]): Promise<string> {
  const path = join(await mkdtemp(join(tmpdir(), 'nodepool-soak-log-')), 'builder.log');
  await writeFile(path, lines.join('\n'));
  return path;
}

await runSoak(
  'soak:clouds',
  { images: 200 },
  'each image is in each cloud exactly once, nothing else is there, and no job is left',
  async ({ numbers: { images }, parts, signal }) => {
    const plan = {
      images,
      maxLifetime: 30_000,
      builderKills: Number.POSITIVE_INFINITY,
      gearmandKills: 2,
      // The cleanup after a crash starts two minutes later, and may need several attempts.
      settlingTime: 420_000,
    };
    const clouds = await openClouds(parts, FAULT_RATE);
    const { faults, settlingSeconds, log, ...all } = await soak(
      plan,
      clouds,
      printNowAndThen(describeUploads),
      signal,
    );
    console.log(describeUploads(all));
    for (const cloud of clouds) {
      const { requests, faults: failed } = cloud.traffic?.() ?? {};
      if (requests !== undefined)
        console.log(`${cloud.entry.name}: ${failed} of ${requests} requests failed`);
    }
    console.log(`the clouds and the queue settled in ${settlingSeconds.toFixed(0)} s more`);
    if (faults.length > 0) console.log(`the log of the builder is in ${await keepLog(log)}`);
    return faults;
  },
  Object.keys(CLOUDS),
);
