/**
 * Shows that disk and clock errors lose no image: `npm run soak:disk -- [--minutes N]`. A daemon builds and uploads to
 * two directory providers and a real Glance while it is killed and stopped, its disks are filled and frozen, and its
 * clock is shifted. Then everything is compared. Prints figures, and exits with 1 if anything differs from the records,
 * or if an incomplete image was ever offered. Requires root, because it mounts loop devices.
 */
import { type DiskSoakProgress, soakDisk } from '../test/soak-disk/soak-disk.ts';
import { printNowAndThen, runSoak } from './soak/run-soak.ts';

await runSoak(
  'soak:disk',
  { minutes: 10 },
  'exactly the recorded images are everywhere, all complete, and no incomplete one was ever offered',
  async ({ numbers: { minutes }, signal }) => {
    const plan = { duration: minutes * 60_000, settlingTime: 300_000 };
    const { faults, settlingSeconds, ...all } = await soakDisk(plan, printNowAndThen(describe), signal);
    console.log(describe(all));
    console.log(`the records matched, or the time limit passed, ${settlingSeconds.toFixed(0)} s later`);
    return faults;
  },
);

function describe({ seconds, builds, looks, ...counts }: DiskSoakProgress): string {
  return (
    `${seconds.toFixed(0)} s, ${builds} builds and uploads begun, ${looks} looks; daemon killed ${counts.kills} times and ` +
    `stopped ${counts.stops} times, disks filled ${counts.fills} times and frozen ${counts.freezes} times, ` +
    `clock turned ${counts.clockSteps} times`
  );
}
