import { type ImageCandidate, latestImage, parseImageFilter } from '@nodepool-builder/image-builder';
import { type FilterEntry, filterEntry, type LatestImage } from '@nodepool-builder/image-builder/module-kit';
import { type Command, Option } from 'commander';
import type { ProviderConfiguration } from '../configuration/configuration.ts';
import type { Modules } from '../modules.ts';
import { optionalConfigOption, type ProviderOptions, providerOption, withProvider } from './job-provider.ts';
import { append, jsonFileOption } from './options.ts';
import { CommandError, choiceOf, type JsonOptions, printResult } from './output.ts';
import { recordSchema, TEXT, TEXT_OR_NULL, TIME, TIME_OR_NULL } from './record-schema.ts';
import { type Column, formatTime, textTable } from './table.ts';

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
    console.error(await textTable([...why, ...whyNot], COLUMNS));
  }
  const result = { ...(chosen ?? { 'external-id': null }), ...(explain && { refused }) };
  await printResult(result, found.latest === undefined ? [] : [found.latest.externalId], options);
  if (chosen === undefined) {
    throw new CommandError(noImage(options.provider, found), { exitReason: 'not-found' });
  }
}

const COLUMNS: readonly Column[] = [
  { heading: 'EXTERNAL-ID' },
  {
    heading: 'NAME',
    format: (name, { 'external-id': externalId }) => (name === externalId ? '-' : name),
    long: 'id',
  },
  { heading: 'CREATED', format: formatTime },
  { heading: 'BUILT', format: formatTime },
  { heading: 'WHY', long: 'words' },
];

/** Keys of an image in the JSON. */
const IMAGE = {
  'external-id': { ...TEXT, description: 'Id in the provider.' },
  name: { ...TEXT, description: 'Name in the provider.' },
  'image-name': { ...TEXT_OR_NULL, description: 'Name of the image, if nodepool-builder uploaded it.' },
  owner: { ...TEXT_OR_NULL, description: 'Id of the owner.' },
  status: { ...TEXT, description: 'State in the words of the provider.' },
  created: { ...TIME, description: 'Time of its creation in the provider.' },
  built: { ...TIME_OR_NULL, description: 'Time of its build.' },
} as const;

/** Schema of the JSON of `latest`. */
export const LATEST = recordSchema(
  {
    ...IMAGE,
    'external-id': {
      ...TEXT_OR_NULL,
      description: 'Id in the provider; null, without other keys, if no image passes.',
    },
    refused: {
      type: 'array',
      items: recordSchema({ ...IMAGE, reason: TEXT }),
      description: 'With `--explain`: the other images with a matching name, each with the `reason`.',
    },
  },
  ['name', 'image-name', 'owner', 'status', 'created', 'built', 'refused'],
);

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
