import type { Build } from '@nodepool-builder/image-manager';
import type { Command } from 'commander';
import { loadConfiguration } from '../configuration/load.ts';
import type { Modules } from '../modules.ts';
import { withStore } from './manager-store.ts';
import { configOption } from './options.ts';
import { printRecords, type ShownRecord } from './print-records.ts';

/** `dib-image-list`: the builds in the records of the manager. */
export function registerDibImageList(program: Command, modules: Modules): void {
  program
    .command('dib-image-list')
    .summary('list the builds and their state')
    .description(
      'Lists the builds in the records of the manager, with the reason for each and for each failure.',
    )
    .addOption(configOption())
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  $ nodepool-builder dib-image-list -c nodepool.yaml')
    .action(async ({ config, json = false }: { config: string; json?: boolean }) => {
      const { configuration } = await loadConfiguration(config, { modules });
      const state = await withStore(configuration, (store) => store.read());
      await printRecords([...state.builds.values()].map(describeBuild), COLUMNS, json);
    });
}

const COLUMNS = {
  'IMAGE-ID': 'image-id',
  DISKIMAGE: 'diskimage',
  STATE: 'state',
  AGE: 'age',
  WHY: 'why',
} as const;

function describeBuild(build: Build): ShownRecord {
  const { id, diskimage, state, withdrawn, reason, error } = build;
  return {
    'image-id': id,
    diskimage,
    state,
    withdrawn,
    requested: new Date(build.requestedAt).toISOString(),
    reason,
    error: error ?? null,
    why: error ?? (withdrawn ? 'rolled back' : reason),
  };
}
