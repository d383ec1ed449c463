import { basename } from 'node:path';
import { styleText } from 'node:util';
import type { SettingsOf } from '@nodepool-builder/image-builder';
import { readTrustedKeys, type TrustedKey, verifyChain } from '@nodepool-builder/provenance';
import type { Command } from 'commander';
import { describeLink } from '../attestation/origin/origin.ts';
import { LINK } from '../attestation/origin/origin-record.ts';
import { SiteAttestation } from '../attestation/site-attestation.ts';
import type { Configuration } from '../configuration/configuration.ts';
import type { Modules } from '../configuration/modules.ts';
import {
  CommandError,
  type JsonOptions,
  printResult,
  STANDARD_ERROR_LOGGER,
  usageError,
} from '../terms/command-error.ts';
import { append } from '../terms/option-values.ts';
import { recordSchema, TEXT, TEXT_OR_NULL, TIME_OR_NULL } from '../terms/record-schema.ts';
import { collectEvidence, type Evidence, type Link } from './evidence.ts';
import { loadOptionalConfiguration, optionalConfigOption } from './job-provider.ts';
import { exampleOf, jsonFileOption } from './options.ts';
import { withoutProgress, withProgress } from './progress.ts';
import { recordLinks } from './record-links.ts';
import { untilStopSignal } from './stop-signal.ts';

/** Options of `verify`. */
export interface VerifyOptions extends JsonOptions {
  readonly config?: string;
  readonly provider?: string;
  readonly key?: readonly string[];
  readonly attestations?: readonly string[];
  readonly download?: true;
  readonly temporaryDirectory?: string;
}

/** `verify IMAGE`: prints each link of the chain from an image back to its build. */
export function register(program: Command, modules: () => Promise<Modules>): void {
  program
    .command('verify')
    .description(
      'Verifies the origin of an image. It starts at the image and follows its attestations back to the build, and ' +
        'prints for each link what is proven, by which key, or why it is not. It finds attestations next to the image, ' +
        'in images-dir, in the store of the manager, in the provider, and in --attestations. Only signatures by the ' +
        'trusted keys count. Exit code 0: everything is proven; 7: an attestation is missing; 8: an image, a record ' +
        'or an attestation was changed.',
    )
    .argument('<image>', 'image-id, or an image file; with --provider, the external-id of an image there')
    .option('--provider <provider>', 'provider of the image')
    .option(
      '--key <file>',
      'public key to trust, in PEM; repeat it for more (default: attestation.trusted-keys)',
      append,
    )
    .option(
      '--attestations <path>',
      'attestation, or directory of attestations, to use in addition; repeat it for more',
      append,
    )
    .option(
      '--download',
      'download the image from the provider, and compare its SHA-256; a file on this host is always read',
    )
    .option(
      '--temporary-directory <directory>',
      "directory for the download (default: the system's temporary directory)",
    )
    .addOption(optionalConfigOption())
    .option('--json', 'print JSON: the state, and each link with its state, reason and key')
    .addOption(jsonFileOption())
    .addHelpText(
      'after',
      exampleOf(
        'verify debian-0000000042-k7f3q2xa -c nodepool.yaml',
        'verify --provider ci 7d1f8a52-6c1e-4f5e-9c54-1c2f0f6a3b61 --download',
        'verify debian-0000000042-k7f3q2xa.qcow2 --key attestation.pub --attestations *.d',
      ),
    )
    .action(async (image: string, options: VerifyOptions) => {
      const report = await untilStopSignal(async (signal) => verify(image, options, await modules(), signal));
      await printResult(report, reportLines(report), options);
      if (report.state !== 'proven') throw new CommandError('', report.state);
    });
}

const STATES = ['proven', 'unproven', 'refuted'] as const;

/** Schema of the JSON of `verify`. */
export const VERIFIED_IMAGE = recordSchema({
  subject: { ...TEXT, description: 'The image that was verified.' },
  'image-id': { ...TEXT_OR_NULL, description: 'Its image-id, if known.' },
  state: {
    enum: STATES,
    description:
      '`proven`: all links are proven, except perhaps the link of the materials; `unproven`: an attestation is missing; ' +
      '`refuted`: something differs from what was attested.',
  },
  built: { ...TIME_OR_NULL, description: 'End of the build, if the build is proven.' },
  builder: { ...TEXT_OR_NULL, description: 'Id of the builder, if the build is proven.' },
  links: {
    type: 'array',
    items: recordSchema({
      ...LINK.properties,
      kind: { ...LINK.properties.kind, enum: [...LINK.properties.kind.enum, 'record'] },
      place: { ...TEXT_OR_NULL, description: 'Location of the attestation or the record.' },
    }),
    description:
      'From the image back to its build: `kind`, `subject`, `state`, `reason`, `key-id`, `key-file`, `place`.',
  },
});

type VerifiedImage = SettingsOf<typeof VERIFIED_IMAGE>;

/** @throws CommandError, ProvenanceError; errors of the provider, of the store and of files */
async function verify(
  image: string,
  options: VerifyOptions,
  modules: Modules,
  signal: AbortSignal,
): Promise<VerifiedImage> {
  const { key = [], attestations = [], config, provider, download, json } = options;
  if (download && provider === undefined) {
    throw usageError('--download needs --provider with the provider of the image');
  }
  // A file with its attestations and a key needs no configuration, wherever it is verified.
  const isComplete = provider === undefined && key.length > 0 && attestations.length > 0;
  const configuration =
    isComplete && config === undefined ? undefined : await loadOptionalConfiguration(config, modules);
  const keys = await trustedKeys(key, configuration);
  const evidence = await collectEvidence(image, {
    ...options,
    attestations,
    configuration,
    modules,
    signal,
    withProgress: json ? withoutProgress : withProgress,
  });
  return await reportOf(evidence, keys);
}

/**
 * The keys of `--key`, or else the trusted keys of the configuration.
 *
 * @throws CommandError, ProvenanceError; ImageError `invalid-configuration`
 */
async function trustedKeys(
  files: readonly string[],
  configuration: Configuration | undefined,
): Promise<readonly TrustedKey[]> {
  if (files.length > 0) return await readTrustedKeys(files);
  if (configuration?.attestation !== undefined) {
    const keys = await new SiteAttestation(configuration, STANDARD_ERROR_LOGGER).trustedKeys({});
    if (keys.length > 0) return keys;
  }
  throw usageError(
    'no public key to verify with; name one with --key, or set attestation.trusted-keys in the configuration file',
  );
}

async function reportOf(evidence: Evidence, keys: readonly TrustedKey[]): Promise<VerifiedImage> {
  const chain = verifyChain(evidence.subject, evidence.attestations, keys);
  const records = recordLinks(evidence, chain, keys);
  const links: readonly Link[] = [...chain.links, ...records];
  const states = [chain.state, ...records.map(({ state }) => state)];
  const facts = chain.build;
  return {
    subject: evidence.title,
    'image-id': evidence.imageId ?? null,
    state: STATES.findLast((state) => states.includes(state)) ?? 'unproven',
    built: facts?.finishedAt?.toISOString() ?? null,
    builder: facts?.builderId ?? null,
    links: links.map((link) => ({ ...describeLink(link), place: link.place ?? null })),
  };
}

const STYLES = { proven: 'green', unproven: 'yellow', refuted: 'red' } as const;

const CONCLUSIONS: Readonly<Record<VerifiedImage['state'], string>> = {
  proven: 'its origin is proven',
  unproven: 'a part of its origin has no attestation by a trusted key',
  refuted: 'it differs from what was attested; do not use it',
};

function reportLines({ subject, state, links }: VerifiedImage): readonly string[] {
  const styled = (word: VerifiedImage['state'], text: string = word): string =>
    styleText(STYLES[word], text, { stream: process.stdout });
  return [
    ...links.flatMap((link) => {
      const by = link['key-id'] === null ? [] : [`key ${keyName(link)}`];
      const from = [...by, ...(link.place === null ? [] : [link.place])].join(', ');
      return [
        `${styled(link.state, link.state.padEnd(8))}  ${link.kind.padEnd(10)}  ${link.subject}: ${link.reason}`,
        ...(from === '' ? [] : [`${' '.repeat(22)}${from}`]),
      ];
    }),
    `${styled(state)}: ${subject}: ${CONCLUSIONS[state]}`,
  ];
}

function keyName(link: VerifiedImage['links'][number]): string {
  const id = String(link['key-id']).slice(0, 16);
  return link['key-file'] === null ? id : `${id} (${basename(link['key-file'])})`;
}
