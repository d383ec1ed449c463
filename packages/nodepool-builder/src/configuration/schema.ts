import type { SettingsOf, SettingsSchema } from '@nodepool-builder/image-builder';
import { elsewhere, TEXT } from '../yaml/schema-node.ts';
import { ATTESTATION, REQUIRED_FOR_ALL } from './attestation.ts';
import { type DiskImageSource, diskImageSchema, sectionSchemas } from './disk-image-schema.ts';
import { GEARMAN_SERVER_SCHEMA } from './gearman-server.ts';
import { MANAGER } from './manager.ts';
import type { Modules } from './modules.ts';
import { NOTIFICATIONS } from './notification.ts';
import {
  CLOUD_IMAGES,
  type CloudImageSource,
  type ProviderSource,
  providerSchema,
} from './provider-schema.ts';

const OPTIONAL_PATH = { type: ['string', 'null'] } as const;

const CRON = {
  type: ['object', 'null'],
  description: 'Schedules, as cron expressions in local time.',
  properties: {
    'image-update': {
      type: 'string',
      description:
        'Time at which the manager rebuilds images that have neither `rebuild-age` nor `rebuild-cron`.',
    },
  },
} as const satisfies SettingsSchema;

/** First keys of the top level. */
const TOP_LEVEL = {
  'images-dir': { ...TEXT, format: 'path', description: 'Directory of the images, owned by one process.' },
  'elements-dir': { ...OPTIONAL_PATH, description: '`ELEMENTS_PATH` of disk-image-create.' },
  'script-dir': { ...OPTIONAL_PATH, description: '`NODEPOOL_SCRIPTDIR` of disk-image-create.' },
  'build-log-dir': {
    ...TEXT,
    format: 'path',
    description: 'Directory of the build logs. Default: `.nodepool-builder/logs` in `images-dir`.',
  },
  'build-cache-size': {
    type: 'number',
    minimum: 0,
    default: 10,
    description:
      'Size limit in GiB of each cache that diskimage-builder keeps for a disk image: packages, git repositories ' +
      'and base images. The least recently used downloads are removed. The caches are in `.nodepool-builder/cache` ' +
      'in `images-dir`, unless `DIB_IMAGE_CACHE` is set. With 0, diskimage-builder selects the directory, and ' +
      'nothing is removed.',
  },
  'build-environment': {
    type: ['array', 'null'],
    items: TEXT,
    description:
      'Names of daemon variables that builds and hooks inherit in addition to [the usual ' +
      'ones](#environment-of-builds-and-hooks), such as `[VAULT_TOKEN, OS_*]`.',
  },
  'public-variables': {
    type: ['array', 'null'],
    items: TEXT,
    description:
      'Variables whose values logs and attestations may show, such as `[MIRROR_URL, REGION_*]`. ' +
      "[diskimage-builder's variables](#which-values-are-shown) need no entry.",
  },
  'build-log-retention': {
    type: 'integer',
    minimum: 1,
    default: 7,
    description: 'Number of logs to keep for each disk image.',
  },
  'virtual-size-limit': {
    type: 'number',
    exclusiveMinimum: 0,
    default: 256,
    description:
      'Maximum virtual size in GiB of a disk that is converted or imported. A file of a few kilobytes can represent ' +
      'terabytes.',
  },
  'gearman-servers': {
    type: ['array', 'null'],
    items: GEARMAN_SERVER_SCHEMA,
    description: 'Job servers. Default: the daemon runs its own on loopback.',
  },
  notifications: NOTIFICATIONS,
  attestation: ATTESTATION,
  'require-attestation': REQUIRED_FOR_ALL,
  plugins: {
    type: ['array', 'null'],
    items: TEXT,
    description:
      'Plugins with additional builders and providers: names of npm packages, or paths of JavaScript or TypeScript ' +
      'files. Packages are looked up next to nodepool-builder, then from the directory of this file. Code outside ' +
      "nodepool-builder is loaded only if no user except root and the process's user can change it. A change takes " +
      'effect after a restart.',
  },
} as const satisfies Record<string, SettingsSchema>;

/** Schema of the keys that do not belong to a module. */
export const GENERAL = {
  type: 'object',
  properties: { ...TOP_LEVEL, cron: CRON },
  required: ['images-dir'],
} as const satisfies SettingsSchema;

/** A valid `nodepool.yaml`. */
export interface ConfigurationSource extends Partial<SettingsOf<typeof GENERAL>> {
  readonly 'images-dir': string;
  readonly diskimages?: readonly DiskImageSource[] | null;
  readonly providers?: readonly ProviderSource[] | null;
  readonly 'cloud-images'?: readonly CloudImageSource[] | null;
  readonly manager?: Partial<SettingsOf<typeof MANAGER>>;
  /** Sections of builders. */
  readonly [section: string]: unknown;
}

/** Schema of the keys of `nodepool.yaml` that a builder reads: types, defaults and a description of each key. */
export function configurationSchema(modules: Modules): SettingsSchema {
  return {
    type: 'object',
    required: GENERAL.required,
    additionalProperties: false,
    properties: {
      ...TOP_LEVEL,
      diskimages: {
        type: ['array', 'null'],
        items: diskImageSchema(modules),
        description: 'Images that this builder can build.',
      },
      ...sectionSchemas(modules),
      providers: {
        type: ['array', 'null'],
        items: providerSchema(modules),
        description: 'Providers to upload images to, and to run instances in.',
      },
      'cloud-images': CLOUD_IMAGES,
      cron: CRON,
      manager: MANAGER,
      ...elsewhere(
        ...'labels targets zmq-publishers zookeeper-servers dburi max-hold-age webapp'.split(' '),
        ...'diskimage-defaults zookeeper-tls zookeeper-timeout tenant-resource-limits'.split(' '),
      ),
    },
  };
}

/** JSON Schema for editors. */
export function jsonSchema(modules: Modules): object {
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'nodepool.yaml, as nodepool-builder reads it',
    ...configurationSchema(modules),
  };
}
