import { type ImageCandidate, latestImage, parseImageFilter } from '@nodepool-builder/image-builder';
import { type FilterEntry, filterEntry, type LatestImage } from '@nodepool-builder/image-builder/module-kit';
import { type Command, Option } from 'commander';
import type { ProviderConfiguration } from '../configuration/configuration.ts';
import type { Modules } from '../modules.ts';
import { optionalConfigOption, type ProviderOptions, providerOption, withProvider } from './job-provider.ts';
import { append, jsonFileOption } from './options.ts';
import { CommandError, choiceOf, type JsonOptions, printResult, textTable } from './output.ts';

interface LatestOptions extends ProviderOptions, JsonOptions {
  readonly filter?: readonly string[];
  readonly image?: string;
  readonly known?: readonly string[];
  readonly explain?: true;
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
    .addOption(jsonFileOption())
    .addHelpText('after', EXAMPLES)
    .action((options: LatestOptions) => latest(options, modules));
}

const EXAMPLES = `
Keys: name (with * and ?), image-name, tag, owner (an id; default: self), architecture, visibility, property:NAME,
created-after (a time), not-older-than (12h, 7d).

Example:
  $ nodepool-builder latest --provider ci --filter 'name=debian-*' --filter architecture=x86_64 --explain`;

async function latest(options: LatestOptions, modules: Modules): Promise<void> {
  const { known = [], explain = false } = options;
  const found = await withProvider(options, modules, async ({ configuration, provider, signal }) => {
    const filter = parseImageFilter(filterEntries(options, configuration));
    const find = async (withRefused: boolean): Promise<LatestImage> =>
      latestImage(await provider.candidates(filter, { known, withRefused, signal }), filter);
    const first = await find(explain);
    // Refused images are only asked for on request, or if no image passes.
    return first.latest === undefined && !explain ? await find(true) : first;
  });
  const chosen = found.latest && describe(found.latest);
  const refused = found.refused.map(({ candidate, reason }) => ({ ...describe(candidate), reason }));
  if (explain && !options.json) {
    const why = chosen === undefined ? [] : [{ ...chosen, why: 'it is the latest' }];
    const whyNot = refused.map((image) => ({ ...image, why: `not chosen: ${image.reason}` }));
    console.error(await textTable([...why, ...whyNot], HEADINGS));
  }
  const result = { ...(chosen ?? { 'external-id': null }), ...(explain && { refused }) };
  await printResult(result, found.latest === undefined ? [] : [found.latest.externalId], options);
  if (chosen === undefined) {
    throw new CommandError(noImage(options.provider, found), { exitReason: 'not-found' });
  }
}

const HEADINGS = ['EXTERNAL-ID', 'NAME', 'CREATED', 'BUILT', 'WHY'];

function filterEntries(
  { filter = [], image }: LatestOptions,
  { name, entry: { images } }: ProviderConfiguration,
): readonly FilterEntry[] {
  if (image === undefined) return filter.map(filterEntry);
  const entries = images.find((configured) => configured.name === image)?.['image-filters'];
  if (entries !== undefined) return entries;
  const usable = images.filter((configured) => configured['image-filters'] !== undefined);
  const names = usable.map((configured) => configured.name);
  throw new CommandError(
    `provider "${name}" has no image "${image}" with image-filters in a nodepool.yaml; ${choiceOf(names)}; or use --filter`,
    { exitReason: 'not-found' },
  );
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
