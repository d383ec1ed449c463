import {
  type ImageCandidate,
  type ImageProvider,
  type InstanceProvider,
  latestImage,
  type OperationOptions,
  type PartialUpload,
} from '@nodepool-builder/image-builder';
import { parseDuration } from '@nodepool-builder/image-builder/internal';
import { type Command, InvalidArgumentError, Option } from 'commander';
import type { Modules } from '../configuration/modules.ts';
import {
  CommandError,
  errorLine,
  type JsonOptions,
  printResult,
  usageError,
  warn,
} from '../terms/command-error.ts';
import { positiveInteger } from '../terms/option-values.ts';
import { recordSchema, TEXT, TEXT_OR_NULL, TIME, TIME_OR_NULL } from '../terms/record-schema.ts';
import { optionalConfigOption, type ProviderOptions, providerOption, withProvider } from './job-provider.ts';
import { exampleOf, jsonFileOption } from './options.ts';
import { formatTime } from './table.ts';
import { isJobUploadId } from './upload.ts';

interface RemovalOptions extends ProviderOptions, JsonOptions {
  readonly olderThan?: number;
  /** True to only print what would be removed. */
  readonly dryRun?: true;
}

/** Parses a duration. Returns milliseconds. */
function duration(text: string): number {
  const milliseconds = parseDuration(text);
  if (milliseconds !== undefined) return milliseconds;
  throw new InvalidArgumentError('It must be a number and a unit: 90m, 12h, 7d.');
}

interface PruneOptions extends RemovalOptions {
  readonly name?: string;
  readonly keep?: number;
}

/** Default of `reap --older-than`, in milliseconds. No job runs that long. */
const DEFAULT_AGE = 6 * 3_600_000;

/** `prune` deletes old versions of images; `reap` removes what killed jobs left in a provider. */
export function register(program: Command, modules: () => Promise<Modules>): void {
  program
    .command('prune')
    .description(
      'Deletes images that "upload" uploaded to a provider: of each name, those that are neither among the newest ' +
        '(--keep) nor younger than --older-than. The newest image of a name always stays. Images that a daemon ' +
        'uploaded also stay: nodepool or the manager deletes them. Several jobs may prune at the same time. "reap" ' +
        'removes what killed jobs left.',
    )
    .addOption(providerOption())
    .option('--name <name>', 'only images of this name (default: of every name)')
    .option(
      '--keep <n>',
      'number of images to keep for each name, whatever their age (default: 1)',
      positiveInteger,
    )
    .option(
      '--older-than <duration>',
      'min age of the images to delete: 90m, 12h, 7d (default: any age)',
      duration,
    )
    .option('--dry-run', 'only print what would be deleted')
    .addOption(optionalConfigOption())
    .option('--json', 'print JSON')
    .addOption(jsonFileOption())
    .addHelpText('after', exampleOf('prune --provider ci --name debian --keep 2 --older-than 7d --dry-run'))
    .action(async (options: PruneOptions) => prune(options, await modules()));
  program
    .command('reap')
    .description(
      'Removes what killed CI jobs left in a provider. From "upload": incomplete images, objects and ' +
        'partial files. From "build": instances with their key pairs and floating IPs, and snapshots; name the provider ' +
        'as the build did. Anything younger than --older-than may belong to a running job and stays, so it has to be ' +
        'longer than the longest job. It leaves alone what belongs to a daemon, which cleans up by itself, and what lacks ' +
        'the mark of a job. "prune" deletes complete images.',
    )
    .addOption(providerOption())
    .addOption(
      new Option('--older-than <duration>', 'min age, since the last change: 90m, 12h, 7d')
        .argParser(duration)
        .default(DEFAULT_AGE, '6h'),
    )
    .option('--dry-run', 'only print what would be removed')
    .addOption(optionalConfigOption())
    .option('--json', 'print JSON')
    .addOption(jsonFileOption())
    .addHelpText('after', exampleOf('reap --provider ci --older-than 12h --dry-run'))
    .action(async (options: RemovalOptions) => reap(options, await modules()));
}

/** Keys of the records of both commands. */
const OUTCOME = {
  action: { enum: ['deleted', 'would delete', 'failed'], description: 'The action, such as `deleted`.' },
  error: { ...TEXT_OR_NULL, description: 'Error if the action failed.' },
} as const;

/** Schema of a record of `prune`. */
export const PRUNED_RECORD = recordSchema({
  'external-id': { ...TEXT, description: 'Id in the provider.' },
  'image-name': { ...TEXT, description: 'Name of the image.' },
  created: { ...TIME, description: 'Creation time in the provider.' },
  built: { ...TIME_OR_NULL, description: 'Time of its build.' },
  ...OUTCOME,
});

/** Schema of a record of `reap`. */
export const REAPED_RECORD = recordSchema({
  subject: { ...TEXT, description: 'Description of the orphan.' },
  'upload-id': { ...TEXT_OR_NULL, description: 'Id of the upload; null for an orphan of a build.' },
  changed: { ...TIME, description: 'Time of the last change.' },
  ...OUTCOME,
});

type Outcome = (typeof OUTCOME.action.enum)[number];

/** Something to remove. */
interface Removable {
  /** Description for people. */
  readonly subject: string;
  /** The record in JSON. */
  readonly record: Readonly<Record<string, string | null>>;
  /** Resolves with false if the thing no longer exists, or has changed and has to stay. */
  readonly remove: () => Promise<unknown>;
}

/**
 * Removes the things one after the other, and prints the result: a line for each, or JSON for all at the end. After a
 * failure, it continues with the others.
 *
 * @throws CommandError at the end, if one of them could not be removed
 */
async function removeEach(
  things: readonly Removable[],
  options: RemovalOptions,
  signal: AbortSignal,
): Promise<void> {
  const records: object[] = [];
  let failures = 0;
  const report = (action: Outcome, { subject, record }: Removable, error: string | null = null): void => {
    records.push({ ...record, action, error });
    if (error !== null) warn(`${subject}: ${error}`);
    else if (!options.json) console.log(`${action} ${subject}`);
  };
  for (const thing of things) {
    if (signal.aborted) break;
    try {
      if (options.dryRun) report('would delete', thing);
      else if ((await thing.remove()) !== false) report('deleted', thing);
    } catch (error) {
      failures += 1;
      report('failed', thing, errorLine(error));
    }
  }
  await printResult(records, [], options);
  signal.throwIfAborted();
  if (failures > 0) throw new CommandError(`${failures} of ${things.length} could not be deleted`);
}

async function prune(options: PruneOptions, modules: Modules): Promise<void> {
  const { name, keep, olderThan } = options;
  if (keep === undefined && olderThan === undefined) {
    throw usageError('name what to delete, with --keep, --older-than or both');
  }
  await withProvider(options, modules, async ({ provider, signal }) => {
    const images = await imagesOfJobs(provider, name, signal);
    const now = Date.now();
    const old = imagesToPrune(images, keep ?? 1, olderThan ?? 0, now);
    const things = old.map((image) => {
      const { externalId, imageName = '', createdAt, builtAt } = image;
      return {
        subject: `${externalId} (${imageName}, of ${formatTime(madeAt(image, now).toISOString())})`,
        record: {
          'external-id': externalId,
          'image-name': imageName,
          created: createdAt.toISOString(),
          built: builtAt?.toISOString() ?? null,
        },
        remove: () => provider.delete(externalId, { signal }),
      };
    });
    await removeEach(things, options, signal);
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
    provider.findImages(filter, { signal }),
  ]);
  const uploads = listed.filter(({ uploadId }) => isJobUploadId(uploadId));
  const ours = new Set(uploads.map(({ externalId }) => externalId));
  return candidates.filter(
    ({ externalId, imageName, isUsable, isOwn }) =>
      ours.has(externalId) && isUsable && isOwn && (name === undefined || imageName === name),
  );
}

/**
 * Selects images to delete. For each name, it keeps the newest, in the order of `latest`.
 *
 * @param keep number of the newest images to keep, whatever their age; at least 1
 * @param olderThan age in milliseconds below which other images are also kept
 */
export function imagesToPrune(
  images: readonly ImageCandidate[],
  keep: number,
  olderThan: number,
  now: number,
): readonly ImageCandidate[] {
  const byName = Map.groupBy(images, ({ imageName }) => imageName);
  return [...byName.values()].flatMap((versions) => {
    const { latest, refused } = latestImage(versions, {}, now);
    const newestFirst = [latest ?? [], refused.map(({ candidate }) => candidate)].flat();
    return newestFirst.slice(keep).filter((image) => now - madeAt(image, now).getTime() >= olderThan);
  });
}

/**
 * Build time of an image. An unknown or future time is replaced by the upload time, and a future upload time by now.
 */
function madeAt({ builtAt, createdAt }: ImageCandidate, now: number): Date {
  const past = [builtAt, createdAt].find((date) => date !== undefined && date.getTime() <= now);
  return past ?? new Date(now);
}

async function reap(options: RemovalOptions, modules: Modules): Promise<void> {
  const { olderThan = DEFAULT_AGE } = options;
  await withProvider(options, modules, async ({ configuration, provider, providers, signal }) => {
    const { name, module } = configuration;
    const partial = (await provider.listPartialUploads?.({ signal })) ?? [];
    const uploads: Orphan[] = partial.filter(({ uploadId }) => isJobUploadId(uploadId));
    const ofBuilds =
      module.instances === undefined
        ? { orphans: [] }
        : await orphansOfBuilds(providers.instanceProvider(name), signal);
    const orphans = [...uploads, ...ofBuilds.orphans];
    const old = orphans.filter(({ changedAt }) => Date.now() - changedAt.getTime() > olderThan);
    const things = old.map((orphan) => {
      const { subject, uploadId = null } = orphan;
      const changed = orphan.changedAt.toISOString();
      return {
        subject: `${subject} (unchanged since ${formatTime(changed)})`,
        record: { subject, 'upload-id': uploadId, changed },
        remove: () => orphan.remove({ signal }),
      };
    });
    await removeEach(things, options, signal);
    if (ofBuilds.failure !== undefined) throw ofBuilds.failure;
  });
}

/** Something in a provider whose job was killed. */
interface Orphan extends Pick<PartialUpload, 'subject' | 'changedAt'> {
  /** Id of the upload; undefined for an orphan of a build. */
  readonly uploadId?: string;
  remove(options: OperationOptions): Promise<unknown>;
}

interface OrphansOfBuilds {
  readonly orphans: readonly Orphan[];
  /** Error of a list request that may succeed later. */
  readonly failure?: Error;
}

/** Lists the orphans of builds. Uploads need no permission to list instances, so a denial is only a warning. */
async function orphansOfBuilds(provider: InstanceProvider, signal: AbortSignal): Promise<OrphansOfBuilds> {
  const [instances, captures] = await Promise.allSettled([
    provider.list({ signal }),
    provider.captures?.({ signal }) ?? [],
  ]);
  const orphans = [
    ...fulfilled(instances).map((instance) => ({
      subject: `instance ${instance.id} of build ${instance.buildId}`,
      changedAt: instance.launchedAt,
      remove: () => instance.destroy({ signal }),
    })),
    ...fulfilled(captures).map((capture) => ({
      subject: `snapshot ${capture.externalId} of build ${capture.imageId}`,
      changedAt: capture.capturedAt,
      remove: () => capture.discard({ signal }),
    })),
  ];
  const errors = [instances, captures].flatMap((list) => (list.status === 'rejected' ? [list.reason] : []));
  const failure = errors.find((error) => Object(error).refused !== true);
  if (failure !== undefined) return { orphans, failure };
  const [error] = errors.filter(({ code }) => code !== 'no-such-service'); // otherwise the provider stores only images
  if (error !== undefined) warn(`cannot look for orphans of builds: ${errorLine(error)}`);
  return { orphans };
}

function fulfilled<T>(result: PromiseSettledResult<readonly T[]>): readonly T[] {
  return result.status === 'fulfilled' ? result.value : [];
}
