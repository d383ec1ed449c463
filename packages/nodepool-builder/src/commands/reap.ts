import type { Leftover } from '@nodepool-builder/image-builder';
import { type Command, Option } from 'commander';
import type { Modules } from '../modules.ts';
import { isJobUploadId } from './job-upload-id.ts';
import { type JsonOptions, jsonFileOption } from './json-output.ts';
import { duration } from './options.ts';
import {
  optionalConfigOption,
  type ProviderOptions,
  providerOption,
  withProvider,
} from './provider-option.ts';
import { type Removable, removeEach } from './remove-each.ts';

interface ReapOptions extends ProviderOptions, JsonOptions {
  readonly olderThan: number;
  readonly dryRun?: true;
}

/** Milliseconds: longer than a job runs, so that none is still at work on what is older. */
const DEFAULT_AGE = 6 * 3_600_000;

/** `reap --provider P`: removes what uploads that broke off have left. */
export function registerReap(program: Command, modules: Modules): void {
  program
    .command('reap')
    .summary('remove what killed CI jobs left in a provider')
    .description(
      'Removes what the command upload has left in a provider when its job was killed: images that never became whole, ' +
        'objects, and partial files. What changed lately stays, for it may be on its way: --older-than has to be ' +
        'longer than the longest job. What a daemon began is never touched: it clears up itself.',
    )
    .addOption(providerOption())
    .addOption(
      new Option('--older-than <duration>', 'how long ago it has to have changed last: 90m, 12h, 7d')
        .argParser(duration)
        .default(DEFAULT_AGE, '6h'),
    )
    .option('--dry-run', 'say what would be removed')
    .addOption(optionalConfigOption())
    .option('--json', 'print JSON')
    .addOption(jsonFileOption())
    .addHelpText('after', '\nExample:\n  $ nodepool-builder reap --provider ci --older-than 12h --dry-run')
    .action(async (options: ReapOptions) => {
      const { olderThan, dryRun = false } = options;
      await withProvider(options, modules, async ({ provider }, signal) => {
        const leftovers = (await provider.leftovers?.({ signal })) ?? [];
        const old = leftovers.filter(
          ({ uploadId, changedAt }) =>
            isJobUploadId(uploadId) && Date.now() - changedAt.getTime() > olderThan,
        );
        await removeEach(old.map(toRemovable), { ...options, dryRun, signal });
      });
    });
}

function toRemovable(leftover: Leftover): Removable {
  const { uploadId, subject, changedAt } = leftover;
  return {
    subject: `${subject} (unchanged since ${changedAt.toISOString()})`,
    record: { subject, 'upload-id': uploadId, changed: changedAt.toISOString() },
    remove: (signal) => leftover.remove({ signal }),
  };
}
