/**
 * Shows that no image is lost or doubled: `npm run soak -- [--images N]`. Uploads images to three projects of a real
 * Glance, over a real gearmand, while the builder is killed every few seconds and gearmand twice; then the images are
 * counted. Prints figures; exits with 1 unless each image exists exactly once.
 */
import { type SoakProgress, soak } from '../test/soak/soak.ts';
import { printNowAndThen, runSoak } from './soak/run-soak.ts';

await runSoak(
  'soak',
  { images: 200 },
  'each image is in each provider exactly once, nothing else is there, and no job is left',
  async ({ numbers: { images }, signal }) => {
    const plan = {
      images,
      longestLife: 8000,
      builderKills: Number.POSITIVE_INFINITY,
      gearmandKills: 2,
      // The cleanup after a crash starts two minutes later.
      settlingTime: 240_000,
    };
    const { faults, settlingSeconds, ...all } = await soak(plan, printNowAndThen(describe), signal);
    console.log(describe(all));
    console.log(`the clouds and the queue settled in ${settlingSeconds.toFixed(0)} s more`);
    return faults;
  },
);

function describe({ done, uploads, submitted, lost, failed, ...kills }: SoakProgress): string {
  return (
    `${done} of ${uploads} uploads in ${kills.seconds.toFixed(0)} s; builder killed ${kills.builderKills} times, ` +
    `gearmand ${kills.gearmandKills} times; ${submitted} jobs, ${lost} again as the server was lost, ` +
    `${failed} again as they failed`
  );
}
