import { type ImageCandidate, type ImageProvider, latestImage } from '@nodepool-builder/image-builder';
import type { Command } from 'commander';
import type { Modules } from '../modules.ts';
import { CommandError } from './command-error.ts';
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

/** `prune --provider P --keep N --older-than D`: deletes old versions of images. */
export function registerPrune(program: Command, modules: Modules): void {
  program
    .command('prune')
    .summary('delete old images that "upload" uploaded')
    .description(
      'Deletes images that "upload" uploaded to a provider: of each name, those that are neither among the newest ' +
        '(--keep) nor younger than --older-than. The newest image of a name always stays. Images that a daemon ' +
        'uploaded stay, too: nodepool or the manager deletes them. Several jobs may prune at the same time. "reap" ' +
        'removes what killed jobs left.',
    )
    .addOption(providerOption(modules))
    .option('--name <name>', 'only images of this name (default: of every name)')
    .option(
      '--keep <n>',
      'number of images of each name that stay, however old (default: 1)',
      positiveInteger,
    )
    .option(
      '--older-than <duration>',
      'least age of the images to delete: 90m, 12h, 7d (default: any age)',
      duration,
    )
    .option('--dry-run', 'only print what would be deleted')
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
        throw new CommandError('say what to delete, with --keep, --older-than or both');
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

/** Images that jobs uploaded and that are complete and usable. */
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

/** Which images of each name stay. */
export interface Retention {
  /** Number of the newest images, which stay however old they are; at least 1. */
  readonly keep: number;
  /** Age in milliseconds below which the others stay, too. */
  readonly olderThan: number;
}

/** Selects images to delete: of each name, all but the newest, in the order of `latest`. */
export function imagesToPrune(
  images: readonly ImageCandidate[],
  { keep, olderThan }: Retention,
  now: number,
): readonly ImageCandidate[] {
  const byName = Map.groupBy(images, ({ imageName }) => imageName);
  return [...byName.values()].flatMap((versions) => {
    const { latest, refused } = latestImage(versions, {}, now);
    const newestFirst = [
      ...(latest === undefined ? [] : [latest]),
      ...refused.map(({ candidate }) => candidate),
    ];
    return newestFirst.slice(keep).filter((image) => now - madeAt(image, now).getTime() >= olderThan);
  });
}

/** Time of the build. If it is unknown or in the future, the time of the upload; if that is in the future, too, now. */
function madeAt({ builtAt, createdAt }: ImageCandidate, now: number): Date {
  const past = [builtAt, createdAt].find((date) => date !== undefined && date.getTime() <= now);
  return past ?? new Date(now);
}
