/**
 * Shows that no image is lost or duplicated: `npm run soak -- [--images N]`. Uploads images to three projects of a real
 * Glance, over a real gearmand, while the builder is killed every few seconds and gearmand twice. Then counts the
 * images. Prints figures, and exits with 1 unless each image exists exactly once.
 */
import { openStackClouds } from '../test/soak/openstack-clouds.ts';
import { soak } from '../test/soak/soak.ts';
import { describeUploads, printNowAndThen, runSoak } from './soak/run-soak.ts';

await runSoak(
  'soak',
  { images: 200 },
  'each image is in each provider exactly once, nothing else is there, and no job is left',
  async ({ numbers: { images }, signal }) => {
    const plan = {
      images,
      maxLifetime: 8000,
      builderKills: Number.POSITIVE_INFINITY,
      gearmandKills: 2,
      // The cleanup after a crash starts two minutes later.
      settlingTime: 240_000,
    };
    const { faults, settlingSeconds, ...all } = await soak(
      plan,
      await openStackClouds(3),
      printNowAndThen(describeUploads),
      signal,
    );
    console.log(describeUploads(all));
    console.log(`the clouds and the queue settled in ${settlingSeconds.toFixed(0)} s more`);
    return faults;
  },
);
