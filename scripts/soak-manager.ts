/**
 * Shows that the manager ends with exactly the wanted images: `npm run soak:manager -- [--images N] [--providers N]
 * [--generations N]`. Everything is built and uploaded several times, against doubles of builders and clouds, while one
 * call in ten fails and two builders and two managers are killed every few seconds. Prints figures, and exits with 1 if
 * the result differs, or if a provider ever lost its last good image.
 */
import { type ManagerSoakProgress, soakManager } from '../test/soak-manager/soak-manager.ts';
import { printNowAndThen, runSoak } from './soak/run-soak.ts';

await runSoak(
  'soak:manager',
  { images: 100, providers: 5, generations: 3 },
  'exactly the wanted images are everywhere, no job is left, and no provider ever lost its last good image',
  async ({ numbers: { images, ...numbers }, signal }) => {
    const plan = {
      ...numbers,
      diskimages: images,
      kills: 5,
      faultRate: 0.1,
      maxLifetime: 10_000,
      settlingTime: 300_000,
    };
    const { faults, settlingSeconds, ...all } = await soakManager(plan, printNowAndThen(describe), signal);
    console.log(describe(all));
    console.log(`the last comparison took place ${settlingSeconds.toFixed(0)} s later`);
    return faults;
  },
);

function describe({ generation, done, uploads, seconds, ...counts }: ManagerSoakProgress): string {
  return (
    `generation ${generation}: ${done} of ${uploads} uploads, ${seconds.toFixed(0)} s; ` +
    `${counts.faultyCalls} of ${counts.calls} calls failed; ` +
    `${counts.builderKills} builders and ${counts.managerKills} managers were killed`
  );
}
