import type { Command } from 'commander';
import { loadConfiguration } from '../configuration/load.ts';
import type { Modules } from '../modules.ts';
import { withStateView } from './manager-store.ts';
import { configOption } from './options.ts';
import { PLAN_COLUMNS, planRecords } from './plan-records.ts';
import { printRecords } from './print-records.ts';

/** `plan`: what the manager would do next, and why. */
export function registerPlan(program: Command, modules: Modules): void {
  program
    .command('plan')
    .summary('show what the manager would do next, and why')
    .description(
      'Shows what the manager would do next, and what it waits for, each with the reason. It changes nothing, and ' +
        'needs no manager that runs. What is being built or uploaded at the moment is in dib-image-list and image-list.',
    )
    .addOption(configOption())
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  $ nodepool-builder plan -c nodepool.yaml')
    .action(async ({ config, json = false }: { config: string; json?: boolean }) => {
      const { configuration } = await loadConfiguration(config, { modules });
      const records = await withStateView(configuration, (state) => planRecords(configuration, state));
      await printRecords(records, PLAN_COLUMNS, json);
    });
}
