import {
  type CandidateOptions,
  type ImageCandidate,
  type ImageFilter,
  type ImageProvider,
  latestImage,
  parseImageFilter,
} from '@nodepool-builder/image-builder';
import { type FilterEntry, filterEntry, type LatestImage } from '@nodepool-builder/image-builder/module-kit';
import { type Command, Option } from 'commander';
import type { ProviderConfiguration } from '../configuration/configuration.ts';
import type { Modules } from '../modules.ts';
import { CommandError, choiceOf } from './command-error.ts';
import {
  optionalConfigOption,
  type ProviderOptions,
  providerOption,
  withProvider,
} from './provider-option.ts';
import { textTable } from './text-table.ts';

interface LatestOptions extends ProviderOptions {
  readonly filter?: readonly string[];
  readonly image?: string;
  readonly known?: readonly string[];
  readonly explain?: true;
  readonly json?: true;
}

/** `latest`: prints the most recent image in a provider that passes a filter. */
export function registerLatest(program: Command, modules: Modules): void {
  program
    .command('latest')
    .summary('find the latest image in a provider')
    .description(
      'Prints the external-id of the most recent image that passes all filters, and fails if there is none. Images ' +
        'that are pending, failed, withdrawn or hidden never pass, nor do images of other owners unless "owner" names ' +
        'them. The most recent image is the one with the latest build time; if one of them has no build time, the one ' +
        'with the latest creation time in the provider.',
    )
    .addOption(providerOption(modules))
    .addOption(optionalConfigOption())
    .option(
      '--filter <key=value>',
      'filter; repeat it for more: an image needs one of the values of each key',
      append,
    )
    .addOption(
      new Option(
        '--image <name>',
        'filter by the image-filters of this image of the provider in nodepool.yaml',
      ).conflicts('filter'),
    )
    .option(
      '--known <external-id>',
      'consider this image, too, even if the cloud does not list it yet',
      append,
    )
    .option(
      '--explain',
      'list all images with a matching name on standard error, each with the reason why it was not chosen',
    )
    .option('--json', 'print JSON')
    .addHelpText('after', EXAMPLES)
    .action(async (options: LatestOptions) => {
      const { provider: name, known = [], explain = false, json = false } = options;
      const found = await withProvider(options, modules, ({ configuration, provider }, signal) => {
        const filter = parseImageFilter(filterEntries(options, configuration));
        return findLatest(provider, filter, { known, withRefused: explain, signal });
      });
      const { latest } = found;
      if (json) console.log(JSON.stringify(describeAll(found, explain), null, 2));
      else if (latest !== undefined) console.log(latest.externalId);
      if (explain && !json) console.error(await explanation(found));
      if (latest === undefined) throw new CommandError(noImage(name, found));
    });
}

const EXAMPLES = `
Keys: name (with * and ?), image-name, tag, owner (an id; default: self), architecture, visibility, property:NAME,
created-after (a time), not-older-than (12h, 7d).

Example:
  $ nodepool-builder latest --provider ci --filter 'name=debian-*' --filter architecture=x86_64 --explain`;

function append(value: string, values: readonly string[] = []): readonly string[] {
  return [...values, value];
}

function filterEntries(
  { filter = [], image }: LatestOptions,
  { name, images }: ProviderConfiguration,
): readonly FilterEntry[] {
  if (image === undefined) return filter.map(filterEntry);
  const entries = images.find((configured) => configured.name === image)?.imageFilters;
  if (entries !== undefined) return entries;
  const usable = images.filter(({ imageFilters }) => imageFilters !== undefined);
  const names = usable.map((configured) => configured.name);
  throw new CommandError(
    `provider "${name}" has no image "${image}" with image-filters in a nodepool.yaml; ${choiceOf(names)}; or use --filter`,
  );
}

/** Asks for refused images only on request, or if no image passes. */
async function findLatest(
  provider: ImageProvider,
  filter: ImageFilter,
  options: CandidateOptions,
): Promise<LatestImage> {
  const found = latestImage(await provider.candidates(filter, options), filter);
  if (found.latest !== undefined || options.withRefused === true) return found;
  return latestImage(await provider.candidates(filter, { ...options, withRefused: true }), filter);
}

function describeAll({ latest, refused }: LatestImage, explain: boolean): object {
  return {
    ...(latest === undefined ? { 'external-id': null } : describe(latest)),
    ...(explain && { refused: refused.map(({ candidate, reason }) => ({ ...describe(candidate), reason })) }),
  };
}

function describe(candidate: ImageCandidate): Record<string, string | null> {
  const { externalId, name, imageName, owner, status, createdAt, builtAt } = candidate;
  return {
    'external-id': externalId,
    name,
    'image-name': imageName ?? null,
    owner: owner ?? null,
    status,
    created: createdAt.toISOString(),
    built: builtAt?.toISOString() ?? null,
  };
}

async function explanation({ latest, refused }: LatestImage): Promise<string> {
  const rows = refused.map(({ candidate, reason }) => row(candidate, `not chosen: ${reason}`));
  if (latest !== undefined) rows.unshift(row(latest, 'it is the latest'));
  return await textTable(['EXTERNAL-ID', 'NAME', 'CREATED', 'BUILT', 'WHY'], rows);
}

function row({ externalId, name, createdAt, builtAt }: ImageCandidate, why: string): string[] {
  return [externalId, name, createdAt.toISOString(), builtAt?.toISOString() ?? '-', why];
}

/** Number of reasons in a message. */
const MOST_REASONS = 5;

function noImage(provider: string, { refused }: LatestImage): string {
  const nothing = `no image in provider "${provider}" passes the filters`;
  if (refused.length === 0) return `${nothing}: none has a matching name`;
  const counts = new Map<string, number>();
  for (const { reason } of refused) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  const reasons = [...counts].map(([reason, count]) => `${reason} (${count})`);
  const rest = reasons.length > MOST_REASONS ? '; for more, see --explain' : '';
  return `${nothing}; ${refused.length} with a matching name: ${reasons.slice(0, MOST_REASONS).join('; ')}${rest}`;
}
