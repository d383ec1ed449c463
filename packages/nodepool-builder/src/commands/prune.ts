import type { ImageCandidate, ImageProvider } from '@nodepool-builder/image-builder';
import type { Command } from 'commander';
import type { Modules } from '../modules.ts';
import { CommandError } from './command-error.ts';
import { imagesToPrune, madeAt } from './images-to-prune.ts';
import { isJobUploadId } from './job-upload-id.ts';
import { type JsonOptions, jsonFileOption } from './json-output.ts';
import { duration, positiveInteger } from './options.ts';
import {
  optionalConfigOption,
  type ProviderOptions,
  providerOption,
  withProvider,
} from './provider-option.ts';
import { type Removable, removeEach } from './remove-each.ts';

interface PruneOptions extends ProviderOptions, JsonOptions {
  readonly name?: string;
  readonly keep?: number;
  readonly olderThan?: number;
  readonly dryRun?: true;
}

/** `prune --provider P --keep N --older-than D`: deletes the versions of images that are not needed any more. */
export function registerPrune(program: Command, modules: Modules): void {
  program
    .command('prune')
    .summary('delete old images that "upload" uploaded')
    .description(
      'Deletes images that the command upload has brought to a provider: of each name those that are neither among ' +
        'the newest (--keep) nor young enough (--older-than). The newest one of a name always stays. Images that a ' +
        'daemon uploaded, for nodepool or for a manager, are never touched: they are kept and deleted there. Several ' +
        'may prune at the same time.',
    )
    .addOption(providerOption())
    .option('--name <name>', 'only images of this name (default: of every name)')
    .option('--keep <n>', 'how many of each name stay, however old (default: 1)', positiveInteger)
    .option(
      '--older-than <duration>',
      'how old an image has to be: 90m, 12h, 7d (default: any age)',
      duration,
    )
    .option('--dry-run', 'say what would be deleted')
    .addOption(optionalConfigOption())
    .option('--json', 'print JSON')
    .addOption(jsonFileOption())
    .addHelpText(
      'after',
      '\nExample:\n  $ nodepool-builder prune --provider ci --name debian --keep 2 --older-than 7d --dry-run',
    )
    .action(async (options: PruneOptions) => {
      const { name, keep, olderThan, dryRun = false } = options;
      if (keep === undefined && olderThan === undefined) {
        throw new CommandError('say what is to be deleted, with --keep, with --older-than or with both');
      }
      const retention = { keep: keep ?? 1, olderThan: olderThan ?? 0 };
      await withProvider(options, modules, async ({ provider }, signal) => {
        const images = await imagesOfJobs(provider, name, signal);
        const now = Date.now();
        const old = imagesToPrune(images, retention, now);
        await removeEach(
          old.map((image) => toRemovable(provider, image, now)),
          { ...options, dryRun, signal },
        );
      });
    });
}

/** What jobs uploaded, as far as it is whole, and in use. */
async function imagesOfJobs(
  provider: ImageProvider,
  name: string | undefined,
  signal: AbortSignal,
): Promise<readonly ImageCandidate[]> {
  const filter = name === undefined ? {} : { imageName: [name] };
  const [listed, candidates] = await Promise.all([
    provider.list({ signal }),
    provider.candidates(filter, { signal }),
  ]);
  const ours = new Set(
    listed.filter(({ uploadId }) => isJobUploadId(uploadId)).map(({ externalId }) => externalId),
  );
  return candidates.filter(
    ({ externalId, imageName, isUsable, isOwn }) =>
      ours.has(externalId) && isUsable && isOwn && (name === undefined || imageName === name),
  );
}

function toRemovable(provider: ImageProvider, image: ImageCandidate, now: number): Removable {
  const { externalId, imageName = '', createdAt, builtAt } = image;
  return {
    subject: `${externalId} (${imageName}, of ${madeAt(image, now).toISOString()})`,
    record: {
      'external-id': externalId,
      'image-name': imageName,
      created: createdAt.toISOString(),
      built: builtAt?.toISOString() ?? null,
    },
    remove: async (signal) => {
      await provider.delete(externalId, { signal });
      return true;
    },
  };
}
