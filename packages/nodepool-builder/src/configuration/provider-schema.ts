import { isDeepStrictEqual } from 'node:util';
import {
  type BuilderModule,
  FORMAT_NAMES,
  type ObjectSchema,
  type ProviderModule,
  type SettingsOf,
  type SettingsSchema,
} from '@nodepool-builder/image-builder';
import { IMAGE_FILTERS } from '@nodepool-builder/image-builder/internal';
import { ModuleError } from '../terms/module-error.ts';
import { elsewhere, NAME, TEXT } from '../yaml/schema-node.ts';
import { REQUIRED_FOR_PROVIDER } from './attestation.ts';
import { CLOUD_IMAGE_KEYS, unreadKeys } from './unread-keys.ts';

/** Keys of `cloud-images`, in `providers` and at the top level. */
const CLOUD_IMAGE = {
  name: { ...NAME, description: 'Name, for `nodepool-builder latest --cloud-image` and for launchers.' },
  'image-filters': IMAGE_FILTERS,
} as const satisfies Record<string, SettingsSchema>;

/** `cloud-images` of the top level. */
export const CLOUD_IMAGES = {
  type: ['array', 'null'],
  items: {
    type: 'object',
    required: ['name', 'image-filters'],
    additionalProperties: false,
    properties: CLOUD_IMAGE,
  },
  description:
    'Images that filters select in every provider. In a provider, an entry of `providers[].cloud-images` with the ' +
    'same name and its own conditions takes precedence.',
} as const satisfies SettingsSchema;

/** A valid entry of `cloud-images`. */
export interface CloudImageSource {
  readonly name: string;
  readonly 'image-id'?: string | number | null;
  readonly 'image-filters'?: SettingsOf<typeof IMAGE_FILTERS>;
  readonly [key: string]: unknown;
}

const PROVIDER_IMAGE = {
  type: 'object',
  required: ['name'],
  additionalProperties: false,
  properties: {
    name: {
      ...NAME,
      description: 'Name of the image in the provider: `image-name` of an `image-upload` job.',
    },
    diskimage: { type: ['string', 'null'], format: 'text', description: '`diskimages[].name` to upload.' },
    meta: {
      type: ['object', 'null'],
      additionalProperties: { type: ['string', 'number', 'boolean', 'null'] },
      description:
        'Properties of the uploaded image. Values become text, as Python writes it. `openstack` converts `protected`, ' +
        '`os_hidden`, `min_disk`, `min_ram` and `tags` (`a, b`) to the types of Glance.',
    },
    pause: {
      type: 'boolean',
      default: false,
      description: 'The manager does not upload this image; uploaded images stay.',
    },
  },
} as const satisfies ObjectSchema;

/** Builder and provider modules, by type. */
interface ModuleMaps {
  readonly builders: ReadonlyMap<string, BuilderModule>;
  readonly providers: ReadonlyMap<string, ProviderModule>;
}

/** Default `providers[].type`, as in the Python builder. */
export const DEFAULT_PROVIDER_TYPE = 'openstack';

type Properties = Readonly<Record<string, SettingsSchema>>;

const IMAGE_TYPE = {
  enum: [...FORMAT_NAMES, null],
  description:
    "Disk format to upload, built directly or converted before the upload. Default: the cloud's `image_format`, " +
    'or `qcow2` if the cloud has none.',
} as const satisfies SettingsSchema;

/** Keys that all providers share, after the modules' keys. */
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
    description: 'Max bytes per second for all uploads to the provider together. Default: no limit.',
  },
  'compress-qcow2': {
    type: 'boolean',
    default: false,
    description:
      'Compress qcow2 in conversions, with up to four processors. Uploads take less time, conversions more. All ' +
      "providers get the same file, so set the key in one of them. A builder's own qcow2 is not changed.",
  },
  'image-upload-timeout': {
    type: 'number',
    exclusiveMinimum: 0,
    description:
      'Timeout in seconds for an upload and the conversion before it. Default: no limit while data is transferred, ' +
      'and an hour for the cloud to import the image.',
  },
  'post-upload-hook': {
    ...TEXT,
    format: 'program',
    description:
      'Program that runs after each upload, before its job ends. Its arguments are the name of the provider, the ' +
      "cloud's id of the image, and the path of the local file: the uploaded file, or the image's first file if " +
      'none had to be uploaded. If the program fails or exceeds `image-upload-timeout`, the image is deleted from ' +
      'the provider and the job fails.',
  },
  'require-attestation': REQUIRED_FOR_PROVIDER,
  pause: {
    type: 'boolean',
    default: false,
    description: 'The manager uploads nothing to the provider; uploaded images stay.',
  },
} as const satisfies Record<string, SettingsSchema>;

/** A valid entry of `providers[].images` in the file. */
export type ProviderImageSource = Partial<SettingsOf<typeof PROVIDER_IMAGE>> & {
  readonly name: string;
  readonly [key: string]: unknown;
};

/** Keys that all providers share, with their defaults. */
export type CommonProviderKeys = SettingsOf<{
  readonly type: 'object';
  readonly properties: typeof PROVIDER_KEYS;
}>;

/** A valid entry of `providers` in the file, with the keys of its module and the keys that only nodepool reads. */
export interface ProviderSource extends Partial<CommonProviderKeys> {
  readonly name: string;
  readonly type?: string;
  readonly 'image-type'?: SettingsOf<typeof IMAGE_TYPE>;
  readonly images?: readonly ProviderImageSource[] | null;
  readonly 'cloud-images'?: readonly CloudImageSource[] | null;
  readonly [key: string]: unknown;
}

/**
 * Schema of an entry of `providers`, with the shared keys and the keys of each module.
 *
 * @throws ModuleError if a key of a module has another meaning elsewhere
 */
export function providerSchema({ builders, providers }: ModuleMaps): SettingsSchema {
  const modules = [...providers.values()];
  const types = [...providers.keys()];
  const withoutImages = types.filter((type) => providers.get(type)?.images === undefined);
  const exceptions = withoutImages.map((type) => `\`type: ${type}\``).join(' and ');
  const kinds = modules.map(({ type, settings }) => `\`${type}\`: ${settings.description}`);
  const first: Properties = {
    name: { ...NAME, description: 'Name of the provider, as in the `provider` of an `image-upload` job.' },
    type: {
      enum: types,
      default: DEFAULT_PROVIDER_TYPE,
      description: `Provider type. ${kinds.join('; ')}.`,
    },
    'image-type': IMAGE_TYPE,
  };
  const images: SettingsSchema = {
    type: ['array', 'null'],
    items: providerImageSchema([...builders.values()]),
    description: `Images to upload to the provider.${exceptions && ` Only ${exceptions} may omit them.`}`,
  };
  const last: Properties = {
    ...PROVIDER_KEYS,
    images,
    'cloud-images': cloudImagesSchema(modules),
  };
  const added = moduleKeys(
    modules.map(({ type, settings }): [string, Properties] => [type, settings.properties]),
    { ...first, ...last },
    'all providers have',
  );
  const own = { ...first, ...added, ...last };
  return {
    type: 'object',
    required: ['name'],
    // `null` is not a type: ajv rejects an empty list.
    if: { properties: { type: { enum: [...withoutImages, null] } }, required: ['type'] },
    else: { if: { required: ['cloud-images'] }, else: { required: ['images'] } },
    additionalProperties: false,
    // A module may have a key that nodepool also has.
    properties: { ...own, ...unreadKeys('providers'), ...own },
  };
}

/** Schema of an entry of `providers[].images`, with the builders' additional keys. */
function providerImageSchema(builders: readonly BuilderModule[]): SettingsSchema {
  const added: Record<string, SettingsSchema> = {};
  for (const { type, entries } of builders) {
    for (const [key, schema] of Object.entries(entries?.providerImages?.properties ?? {})) {
      if (key in PROVIDER_IMAGE.properties || key in added) {
        throw collision(type, key, 'images of providers already have');
      }
      added[key] = schema;
    }
  }
  return {
    ...PROVIDER_IMAGE,
    properties: { ...PROVIDER_IMAGE.properties, ...unreadKeys('images'), ...added },
  };
}

/** Schema of `providers[].cloud-images`, with the modules' additional keys. */
function cloudImagesSchema(modules: readonly ProviderModule[]): SettingsSchema {
  const common: Properties = {
    ...CLOUD_IMAGE,
    'image-id': {
      type: ['string', 'number', 'null'],
      description: 'Id of the image in the provider, instead of filters.',
    },
    ...elsewhere(...CLOUD_IMAGE_KEYS),
  };
  const added = moduleKeys(
    modules.map(({ type, images }) => [type, images?.cloudImages?.properties ?? {}]),
    common,
    'all cloud images have',
  );
  return {
    type: ['array', 'null'],
    items: {
      type: 'object',
      required: ['name'],
      additionalProperties: false,
      properties: { ...common, ...added },
    },
    description:
      'Images of the provider for launchers, for `nodepool-builder latest --cloud-image` and for ' +
      "`on-instance.base-image`. Each is the latest image that matches its filters. Only the provider's own images match, " +
      'unless a filter `owner` names other owners.',
  };
}

/**
 * Returns the keys of all modules. Several may have the same key if they accept the same values. Their defaults may
 * differ.
 */
function moduleKeys(
  modules: readonly (readonly [type: string, properties: Properties])[],
  common: Properties,
  taken: string,
): Properties {
  const keys = new Map<string, { owner: string; node: SettingsSchema }>();
  for (const [type, properties] of modules) {
    for (const [key, { description, default: preset, ...node }] of Object.entries<SettingsSchema>(
      properties,
    )) {
      if (key in common) throw collision(type, key, taken);
      const { owner, node: other } = keys.get(key) ?? {
        owner: type,
        node: { ...node, ...(preset !== undefined && { default: preset }) },
      };
      const { description: sentences = '', default: otherPreset, ...accepted }: SettingsSchema = other;
      if (!isDeepStrictEqual(accepted, node))
        throw collision(type, key, `has other values in module "${owner}"`);
      const all = [sentences, description && `For \`type: ${type}\`: ${description}`]
        .filter(Boolean)
        .join(' ');
      const shared = preset !== undefined && preset === otherPreset && { default: preset };
      keys.set(key, { owner, node: { ...node, ...shared, ...(all !== '' && { description: all }) } });
    }
  }
  return Object.fromEntries([...keys].map(([key, { node }]) => [key, node]));
}

function collision(type: string, key: string, reason: string): ModuleError {
  return new ModuleError(`module "${type}" has the key "${key}", which ${reason}`, 'give it another name');
}
