import type { Diagnostic, SettingsSchema } from '@nodepool-builder/image-builder';
import { ELSEWHERE, elsewhere } from '../yaml/schema-node.ts';
import { isMapping } from '../yaml/yaml-document.ts';

/** Keys of a provider since nodepool 0.4, each with its replacement here, which may depend on the types. */
const PROVIDER_KEYS: Readonly<Record<string, (types: readonly string[]) => string>> = {
  driver: ([first, ...others]) =>
    `"type: ${first}" (${others.map((type) => `or ${type}`).join(', ')}) instead of "driver"`,
  diskimages: () => '"images: [{name: IMAGE, diskimage: IMAGE}]" instead of "diskimages"',
  pools: () => 'nothing instead of "pools"',
};

const IN_META = 'write it in "meta" of the image';
const IN_PROVIDER = 'write it in the provider, for all of its images, or in a further provider';

/**
 * Keys since nodepool 0.4 that change what is built or uploaded, by the mapping that contains them, with their
 * replacement.
 */
const REFUSED = {
  diskimages: {
    metadata: 'write it as "meta" in each image of a provider that names the disk image',
  },
  providers: {
    'image-name-format': 'write it as "template-hostname", with {image.name} in place of {image_name}',
    'image-format': 'write it as "image-type"',
    'object-storage': 'write its bucket-name as "bucket-name" of the provider',
  },
  images: {
    tags: IN_META,
    architecture: IN_META,
    'import-method': IN_PROVIDER,
    'ena-support': IN_PROVIDER,
    'imds-support': IN_PROVIDER,
    iops: IN_PROVIDER,
    throughput: IN_PROVIDER,
    'volume-size': IN_PROVIDER,
    'volume-type': IN_PROVIDER,
  },
} as const satisfies Record<string, Readonly<Record<string, string>>>;

/** Keys of `diskimages` since nodepool 10 that delete files after uploads. */
const DELETING = ['keep-formats', 'delete-after-upload'];

/** Keys that describe how a launcher connects to a machine. */
const CONNECTION = 'username password key connection-type connection-port python-path shell-type'.split(' ');

/** Keys of `providers[].cloud-images` that only launchers read. */
export const CLOUD_IMAGE_KEYS: readonly string[] = [
  ...CONNECTION,
  'config-drive',
  'user-data',
  'custom-data',
];

/** Keys that only other parts of nodepool read, in its Gearman era or later. */
const ELSEWHERE_KEYS = {
  diskimages: ['username', 'python-path', 'shell-type'],
  providers: [
    ...Object.keys(PROVIDER_KEYS),
    ...'service-type service-name max-servers min-ram keypair boot-timeout launch-timeout'.split(' '),
    ...'clean-floating-ips availability-zones nodepool-id'.split(' '),
    ...'hostname-format launch-retries max-concurrency priority port-cleanup-interval rate-limit'.split(' '),
    ...'max-cores max-ram max-resources max-projects max-pods quota context host-key-checking'.split(' '),
    ...'region zone network vpc subnet resource-group-location zuul-public-key'.split(' '),
  ],
  images: [
    ...'base-image setup private-key min-ram name-filter user-home config-drive'.split(' '),
    ...'key-name reset'.split(' '),
    ...CONNECTION,
  ],
};

/** Schema of a key of a later nodepool. */
function later($comment: string): SettingsSchema {
  return { description: 'is a key of a later nodepool, and is not read here', not: {}, $comment };
}

/**
 * Schemas of the keys that nodepool has in a mapping and that are not read here. Keys for other parts of nodepool are
 * accepted, keys that delete files are ignored with a warning, others are rejected.
 */
export function unreadKeys(mapping: keyof typeof REFUSED): Record<string, SettingsSchema> {
  const refused = Object.entries(REFUSED[mapping]).map(([key, remedy]) => [key, later(remedy)]);
  const remedy = 'all formats stay in images-dir until the image is deleted; see "keep"';
  const ignored = (mapping === 'diskimages' ? DELETING : []).map((key) => [
    key,
    { ...later(remedy), deprecated: true },
  ]);
  return {
    ...elsewhere(...ELSEWHERE_KEYS[mapping]),
    // beside `images`
    ...(mapping === 'providers' && {
      diskimages: { description: ELSEWHERE, items: { properties: unreadKeys('images') } },
    }),
    ...Object.fromEntries([...refused, ...ignored]),
  };
}

/**
 * Reports a file for a later nodepool, which controls its builders through ZooKeeper. It is an error if a provider
 * lacks `images`, which Gearman-era nodepool required. Otherwise the file may be for both.
 *
 * @param types of providers, the default type first
 */
export function laterNodepoolDiagnostic(document: unknown, types: readonly string[]): Diagnostic | undefined {
  const { providers, labels } = isMapping(document) ? document : {};
  const signs = entriesOf(providers).flatMap(({ entry, index }) =>
    Object.keys(PROVIDER_KEYS)
      .filter((key) => key in entry)
      .map((key) => ({ key, entry, index })),
  );
  const [first] = signs;
  if (first === undefined) return laterLabelsDiagnostic(labels);
  const keys = Object.keys(PROVIDER_KEYS).filter((key) => signs.some((sign) => sign.key === key));
  return {
    pointer: `/providers/${first.index}/${first.key}`,
    severity: signs.some(({ entry }) => !('images' in entry)) ? 'error' : 'warning',
    reason:
      'is a key of nodepool 0.4 and later, which uses ZooKeeper: the file is written for such a release',
    remedy: `write ${keys.map((key) => PROVIDER_KEYS[key]?.(types)).join(', and ')}`,
  };
}

/** Warns about labels that Gearman-era nodepool cannot use. A builder does not read them. */
function laterLabelsDiagnostic(labels: unknown): Diagnostic | undefined {
  const label = entriesOf(labels).find(({ entry }) => !('image' in entry) && !('providers' in entry));
  if (label === undefined) return undefined;
  return {
    pointer: `/labels/${label.index}`,
    severity: 'warning',
    reason: 'has neither image nor providers, as in nodepool 0.4 and later, which uses ZooKeeper',
    remedy: 'it is ignored here; Gearman-era nodepool needs both',
  };
}

/** The mappings in a list, with their positions. */
function entriesOf(list: unknown): readonly { entry: Readonly<Record<string, unknown>>; index: number }[] {
  const entries: readonly unknown[] = Array.isArray(list) ? list : [];
  return entries.flatMap((entry, index) => (isMapping(entry) ? [{ entry, index }] : []));
}
