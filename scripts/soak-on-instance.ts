/**
 * Shows that no orphaned machine is left: `npm run soak:on-instance -- [--kills N] [--seed N]`. A builder that builds
 * images on machines under QEMU is killed at random moments and restarted. Prints each kill, and exits with 1 if a
 * process, an overlay or a record is left, or if a resubmitted job fails.
 */
import { type InstanceKill, soakOnInstance } from '../test/soak-on-instance/soak-on-instance.ts';
import { runSoak } from './soak/run-soak.ts';

await runSoak(
  'soak:on-instance',
  { kills: 20, seed: 1 },
  'after each kill no QEMU, overlay, partial image or record was left, and each resubmitted job succeeded',
  async ({ numbers, signal }) => {
    await soakOnInstance(numbers, (kill) => console.log(`  ${describe(kill)}`), signal);
    return [];
  },
);

function describe({ phase, milliseconds, found = 'forgotten', comesAgain, settled }: InstanceKill): string {
  const moment = `killed ${seconds(milliseconds)} s after it began to be ${phase} (ledger: ${found})`;
  const end = comesAgain ? 'the resubmitted job succeeded' : 'nothing was left';
  return `${moment}: ${end} ${seconds(settled)} s after the restart`;
}

function seconds(milliseconds: number): string {
  return (milliseconds / 1000).toFixed(1);
}
