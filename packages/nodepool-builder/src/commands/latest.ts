import type { ImageCandidate, ImageProvider } from '@nodepool-builder/image-builder';
import { filterEntry } from '@nodepool-builder/image-builder/internal';
import { type Command, Option } from 'commander';
import type { CloudImageConfiguration, ProviderConfiguration } from '../configuration/configuration.ts';
import type { Modules } from '../configuration/modules.ts';
import { findCloudImage, findLatest, noImage } from '../site/choose-image.ts';
import {
  CommandError,
  errorLine,
  type JsonOptions,
  printResult,
  usageError,
} from '../terms/command-error.ts';
import { append } from '../terms/option-values.ts';
import { recordSchema, TEXT, TEXT_OR_NULL, TIME, TIME_OR_NULL } from '../terms/record-schema.ts';
import { optionalConfigOption, type ProviderOptions, providerOption, withProvider } from './job-provider.ts';
import { exampleOf, jsonFileOption } from './options.ts';
import { withoutProgress, withProgress } from './progress.ts';
import { type Column, formatTime, textTable } from './table.ts';

interface LatestOptions extends ProviderOptions, JsonOptions {
  readonly filter?: readonly string[];
  readonly cloudImage?: string;
  readonly known?: readonly string[];
  readonly explain?: true;
  readonly output?: string;
}

/** `latest`: prints the most recent image in a provider that matches a filter. */
export function register(program: Command, modules: () => Promise<Modules>): void {
  program
    .command('latest')
    .description(
      'Prints the external-id of the most recent image that matches all filters, and fails if there is none. Images ' +
        'that are pending, failed, withdrawn or hidden never match, nor do images of other owners unless "owner" names ' +
        'them. The most recent image is the one with the latest build time; if one of them has no build time, the one ' +
        'with the latest creation time in the provider.',
    )
    .addOption(providerOption())
    .addOption(optionalConfigOption())
    .option(
      '--filter <key=value>',
      'filter; repeat it for more: an image needs one of the values of each key',
      append,
    )
    .addOption(
      new Option(
        '--cloud-image <name>',
        'use this entry of cloud-images of nodepool.yaml, of the provider or of the top level',
      ).conflicts('filter'),
    )
    .option(
      '--known <external-id>',
      'also consider this image, even if the cloud does not list it yet',
      append,
    )
    .option(
      '--explain',
      'list all images with a matching name on standard error, each with the reason why it was not chosen',
    )
    .option(
      '--output <file>',
      'also download the image to this file, and compare its digest (s3, openstack, directory)',
    )
    .option('--json', 'print JSON')
    .addOption(jsonFileOption())
    .addHelpText(
      'after',
      NOTES +
        exampleOf("latest --provider ci --filter 'name=debian-*' --filter architecture=x86_64 --explain"),
    )
    .action(async (options: LatestOptions) => latest(options, await modules()));
}

const NOTES = `
Keys: name (with * and ?), image-name, tag, owner (an id; default: self),
architecture, visibility, property:NAME, created-after (a time),
not-older-than (12h, 7d).
`;

async function latest(options: LatestOptions, modules: Modules): Promise<void> {
  const { known = [], explain = false } = options;
  const found = await withProvider(options, modules, async ({ configuration, provider, signal }) => {
    const { imageId, filters } = selectionOf(options, configuration);
    const result = imageId ?? (await findLatest(provider, filters, { known, explain, signal }));
    const chosen = typeof result === 'string' ? result : result.latest?.externalId;
    if (chosen !== undefined) await download(provider, chosen, options, signal);
    return result;
  });
  if (typeof found === 'string') {
    await printResult({ 'external-id': found }, [found], options);
    return;
  }
  const chosen = found.latest && describe(found.latest);
  const refused = found.refused.map(({ candidate, reason }) => ({ ...describe(candidate), reason }));
  if (explain && !options.json) {
    const latestImage = chosen === undefined ? [] : [{ ...chosen, reason: 'most recent image' }];
    const others = refused.map((image) => ({ ...image, reason: `not chosen: ${image.reason}` }));
    console.error(await textTable([...latestImage, ...others], COLUMNS));
  }
  const result = { ...(chosen ?? { 'external-id': null }), ...(explain && { refused }) };
  await printResult(result, found.latest === undefined ? [] : [found.latest.externalId], options);
  if (chosen === undefined) {
    throw new CommandError(noImage(options.provider, found), 'not-found');
  }
}

/** Downloads the image if `--output` is given. */
async function download(
  provider: ImageProvider,
  externalId: string,
  { output, json }: LatestOptions,
  signal: AbortSignal,
): Promise<void> {
  if (output === undefined) return;
  const fetchImage = provider.download?.bind(provider);
  if (fetchImage === undefined) {
    throw usageError(`the images of provider "${provider.name}" are not files; omit --output`);
  }
  const show = json ? withoutProgress : withProgress;
  await show(`download of ${externalId}`, (onProgress) =>
    fetchImage(externalId, output, { signal, onProgress }),
  );
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
  { heading: 'REASON', long: 'words' },
];

/** Keys of an image in the JSON. */
const IMAGE = {
  'external-id': { ...TEXT, description: 'Id in the provider.' },
  name: { ...TEXT, description: 'Name in the provider.' },
  'image-name': { ...TEXT_OR_NULL, description: 'Name of the image, if nodepool-builder uploaded it.' },
  owner: { ...TEXT_OR_NULL, description: 'Id of the owner.' },
  status: { ...TEXT, description: 'State as the provider reports it.' },
  created: { ...TIME, description: 'Creation time in the provider.' },
  built: { ...TIME_OR_NULL, description: 'Time of its build.' },
} as const;

/** Schema of the JSON of `latest`. */
export const LATEST = {
  ...recordSchema({
    ...IMAGE,
    'external-id': {
      ...TEXT_OR_NULL,
      description: 'Id in the provider; null, without other keys, if no image matches.',
    },
    refused: {
      type: 'array',
      items: recordSchema({ ...IMAGE, reason: TEXT }),
      description: 'With `--explain`: the other images with a matching name, each with the `reason`.',
    },
  }),
  required: ['external-id'],
} as const;

function selectionOf(
  { filter = [], cloudImage }: LatestOptions,
  configuration: ProviderConfiguration,
): Pick<CloudImageConfiguration, 'imageId' | 'filters'> {
  if (cloudImage === undefined) return { filters: filter.map(filterEntry) };
  try {
    return findCloudImage(configuration, cloudImage);
  } catch (error) {
    throw new CommandError(errorLine(error), 'not-found', { cause: error });
  }
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
