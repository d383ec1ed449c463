import { isDeepStrictEqual } from 'node:util';
import {
  type BuilderModule,
  FORMAT_NAMES,
  type ObjectSchema,
  type ProviderModule,
  type SettingsOf,
} from '@nodepool-builder/image-builder';
import type { SettingsSchema } from '@nodepool-builder/image-builder/module-kit';
import { ModuleError } from '../module-error.ts';
import { LATER_PROVIDER_KEYS } from './later-nodepool.ts';
import { elsewhere, TEXT } from './schema-node.ts';

/** `image-filters` of an image of a provider. */
const IMAGE_FILTERS = {
  type: ['array', 'null'],
  items: {
    type: 'object',
    required: ['name', 'values'],
    additionalProperties: false,
    properties: {
      name: { type: 'string', minLength: 1, description: 'Key of the filter, as in `--filter`.' },
      values: {
        type: 'array',
        items: { type: ['string', 'number', 'boolean'] },
        description: 'Values. One match suffices.',
      },
    },
  },
  description: 'Filters for `nodepool-builder latest --image`. An image must match all of them.',
} as const satisfies SettingsSchema;

const PROVIDER_IMAGE = {
  type: 'object',
  required: ['name'],
  additionalProperties: false,
  properties: {
    name: {
      ...TEXT,
      description: 'Name of the image in the provider: `image-name` of an `image-upload` job.',
    },
    diskimage: { type: ['string', 'null'], description: '`diskimages[].name` to upload.' },
    meta: {
      type: ['object', 'null'],
      description: 'Properties of the uploaded image. Values become text.',
    },
    pause: {
      type: 'boolean',
      default: false,
      description: 'The manager does not upload this image; images in the provider stay.',
    },
    'image-filters': IMAGE_FILTERS,
  },
} as const satisfies ObjectSchema;

/** Kinds of builders and providers, by their types. */
interface ModuleMaps {
  readonly builders: ReadonlyMap<string, BuilderModule>;
  readonly providers: ReadonlyMap<string, ProviderModule>;
}

/** `providers[].type` of an entry that has none, as in the Python builder. */
export const DEFAULT_PROVIDER_TYPE = 'openstack';

type Properties = Readonly<Record<string, SettingsSchema>>;

const IMAGE_TYPE = {
  enum: [...FORMAT_NAMES, null],
  description:
    'Disk format to upload. It is built, or else converted to before the upload. Default: `image_format` of the cloud; ' +
    '`qcow2` if the cloud has none.',
} as const satisfies SettingsSchema;

/** Keys that all providers have, after those of the modules. */
export const PROVIDER_KEYS = {
  'template-hostname': {
    ...TEXT,
    default: 'template-{image.name}-{timestamp}',
    description:
      'Name of an uploaded image in the cloud. Fields: `{image.name}`, `{image.id}`, `{timestamp}`, `{provider.name}` ' +
      'and other keys of the provider.',
  },
  'bandwidth-limit': {
    type: 'integer',
    minimum: 1,
    description: 'Bytes a second, of all uploads to it together. Default: no limit.',
  },
  'image-upload-timeout': {
    type: 'number',
    exclusiveMinimum: 0,
    description:
      'Seconds that an upload may take, with the conversion before it. Default: as long as bytes flow, and an hour for ' +
      'the cloud to import the image.',
  },
  'post-upload-hook': {
    ...TEXT,
    format: 'program',
    description:
      'Program that runs after each upload, before its job is answered. Its arguments are the name of the provider, the ' +
      "cloud's id of the image, and the path of the local file: the one that was uploaded, or the first of the image " +
      'if none had to be. If it does not end with 0, or not within `image-upload-timeout`, the image is deleted from ' +
      'the provider and the job fails.',
  },
  pause: {
    type: 'boolean',
    default: false,
    description: 'The manager uploads nothing to it for now; images that it has stay.',
  },
} as const satisfies Record<string, SettingsSchema>;

/** A valid entry of `providers[].images` in the file. */
export type ProviderImageSource = Partial<SettingsOf<typeof PROVIDER_IMAGE>> & {
  readonly name: string;
  readonly [key: string]: unknown;
};

/** Keys that all providers have, with their defaults. */
export type CommonProviderKeys = SettingsOf<{
  readonly type: 'object';
  readonly properties: typeof PROVIDER_KEYS;
}>;

/** A valid entry of `providers` in the file, with the keys of its module and those that only nodepool reads. */
export interface ProviderSource extends Partial<CommonProviderKeys> {
  readonly name: string;
  readonly type?: string;
  readonly 'image-type'?: SettingsOf<typeof IMAGE_TYPE>;
  readonly images?: readonly ProviderImageSource[] | null;
  readonly [key: string]: unknown;
}

/** Keys of a provider that other parts of nodepool read. */
const OTHER_KEYS: Properties = elsewhere(
  'service-type',
  'service-name',
  'max-servers',
  'min-ram',
  'keypair',
  'boot-timeout',
  'launch-timeout',
  'clean-floating-ips',
  'availability-zones',
  'nodepool-id',
  ...LATER_PROVIDER_KEYS,
);

/**
 * Schema of an entry of `providers`: the keys that all providers have, and those of each module.
 *
 * @throws ModuleError if a key of a module has another meaning elsewhere
 */
export function providerSchema({ builders, providers }: ModuleMaps): SettingsSchema {
  const modules = [...providers.values()];
  const types = [...providers.keys()];
  const withoutImages = types.filter((type) => providers.get(type)?.openImages === undefined);
  const exceptions = withoutImages.map((type) => `\`type: ${type}\``).join(' and ');
  const kinds = modules.map(({ type, description }) => `\`${type}\`: ${description}`);
  const first: Properties = {
    name: { ...TEXT, description: '`provider` of an `image-upload` job.' },
    type: {
      enum: types,
      default: DEFAULT_PROVIDER_TYPE,
      description: `Kind of provider. ${kinds.join('; ')}.`,
    },
    'image-type': IMAGE_TYPE,
  };
  const images: SettingsSchema = {
    type: ['array', 'null'],
    items: providerImageSchema([...builders.values()]),
    description: `The images that it uses.${exceptions && ` Only ${exceptions} may do without.`}`,
  };
  const last: Properties = { ...PROVIDER_KEYS, images, ...OTHER_KEYS };
  return {
    type: 'object',
    required: ['name'],
    // `null` is no type: ajv refuses an empty list.
    if: { properties: { type: { enum: [...withoutImages, null] } }, required: ['type'] },
    else: { required: ['images'] },
    additionalProperties: false,
    properties: { ...first, ...moduleKeys(modules, { ...first, ...last }), ...last },
  };
}

/** Keys with which nodepool describes its snapshot images. */
const SNAPSHOT_KEYS: Properties = elsewhere(
  'base-image',
  'setup',
  'username',
  'private-key',
  'min-ram',
  'name-filter',
  'user-home',
  'config-drive',
  'key-name',
  'reset',
);

/** Schema of an entry of `providers[].images`, with the keys that builders add. */
function providerImageSchema(builders: readonly BuilderModule[]): SettingsSchema {
  const added: Record<string, SettingsSchema> = {};
  for (const { type, providerImages } of builders) {
    for (const [key, schema] of Object.entries(providerImages?.properties ?? {})) {
      if (key in PROVIDER_IMAGE.properties || key in added) {
        throw collision(type, key, 'images of providers already have');
      }
      added[key] = schema;
    }
  }
  return { ...PROVIDER_IMAGE, properties: { ...PROVIDER_IMAGE.properties, ...SNAPSHOT_KEYS, ...added } };
}

/** The keys of all modules. Several may have the same key if they accept the same values. */
function moduleKeys(modules: readonly ProviderModule[], common: Properties): Properties {
  const keys = new Map<string, { owner: string; node: SettingsSchema }>();
  for (const { type, settings } of modules) {
    for (const [key, { description, ...node }] of Object.entries<SettingsSchema>(settings.properties)) {
      if (key in common) throw collision(type, key, 'all providers have');
      const { owner, node: other } = keys.get(key) ?? { owner: type, node };
      const { description: sentences = '', ...accepted }: SettingsSchema = other;
      if (!isDeepStrictEqual(accepted, node))
        throw collision(type, key, `has other values in module "${owner}"`);
      const all = [sentences, description && `For \`type: ${type}\`: ${description}`]
        .filter(Boolean)
        .join(' ');
      keys.set(key, { owner, node: { ...node, ...(all !== '' && { description: all }) } });
    }
  }
  return Object.fromEntries([...keys].map(([key, { node }]) => [key, node]));
}

function collision(type: string, key: string, reason: string): ModuleError {
  return new ModuleError(`module "${type}" has the key "${key}", which ${reason}`, 'give it another name');
}
