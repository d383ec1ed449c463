import { isDeepStrictEqual } from 'node:util';
import { FORMAT_NAMES, type ProviderModule } from '@nodepool-builder/image-builder';
import { ModuleError } from '../module-error.ts';
import { IMAGE_FILTERS_SCHEMA } from './image-filters.ts';
import { LATER_PROVIDER_KEYS } from './later-nodepool.ts';
import { elsewhere, NAME, PATH, SCALAR, type SchemaNode } from './schema-node.ts';

const PROVIDER_IMAGE: SchemaNode = {
  type: 'object',
  required: ['name'],
  additionalProperties: false,
  properties: {
    name: {
      ...NAME,
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
    'image-filters': IMAGE_FILTERS_SCHEMA,
    'base-image': {
      ...SCALAR,
      description:
        'Without `diskimage`: image that a machine boots to make this one, as in nodepool (see ' +
        '`on-instance` of `diskimages`). It is offered as `image-build:<name>`, made in the first ' +
        'provider that lists it, and uploaded to the others.',
    },
    setup: { ...SCALAR, description: 'With `base-image`: script of `script-dir` to run on the machine.' },
    username: { ...SCALAR, description: 'With `base-image`: user to log in as. Default: `root`.' },
    'private-key': {
      ...SCALAR,
      description: 'With `base-image`: private key that it accepts. Default: a key made for the build.',
    },
    'min-ram': {
      ...SCALAR,
      description: 'With `base-image`: minimum memory of the machine, in MiB.',
    },
    'name-filter': {
      ...SCALAR,
      description: "With `base-image`: part of the flavor's name.",
    },
    ...elsewhere('user-home', 'config-drive', 'key-name', 'reset'),
  },
};

/** Kinds of providers, by `providers[].type`. */
export type ProviderModules = ReadonlyMap<string, ProviderModule>;

/** `providers[].type` of an entry that has none, as in the Python builder. */
export const DEFAULT_PROVIDER_TYPE = 'openstack';

type Properties = Readonly<Record<string, SchemaNode>>;

const IMAGE_TYPE: SchemaNode = {
  enum: [...FORMAT_NAMES, null],
  description:
    'Disk format to upload. It is built, or else converted to before the upload. Default: `image_format` of the cloud; ' +
    '`qcow2` if the cloud has none.',
};

/** Keys that all providers have, after those of the modules. */
const LAST_KEYS: Properties = {
  'template-hostname': {
    ...NAME,
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
    ...PATH,
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
};

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
export function providerSchema(modules: ProviderModules): SchemaNode {
  const types = [...modules.keys()];
  const withoutImages = types.filter((type) => modules.get(type)?.openImages === undefined);
  const exceptions = withoutImages.map((type) => `\`type: ${type}\``).join(' and ');
  const kinds = [...modules.values()].map(({ type, description }) => `\`${type}\`: ${description}`);
  const first: Properties = {
    name: { ...NAME, description: '`provider` of an `image-upload` job.' },
    type: {
      enum: types,
      default: DEFAULT_PROVIDER_TYPE,
      description: `Kind of provider. ${kinds.join('; ')}.`,
    },
    'image-type': IMAGE_TYPE,
  };
  const images: SchemaNode = {
    type: ['array', 'null'],
    items: PROVIDER_IMAGE,
    description: `The images that it uses.${exceptions && ` Only ${exceptions} may do without.`}`,
  };
  const last: Properties = { ...LAST_KEYS, images, ...OTHER_KEYS };
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

/** The keys of all modules. Several may have the same key if they accept the same values. */
function moduleKeys(modules: ProviderModules, common: Properties): Properties {
  const keys = new Map<string, { owner: string; node: SchemaNode }>();
  for (const { type, settings } of modules.values()) {
    for (const [key, { description, ...node }] of Object.entries<SchemaNode>(settings.properties)) {
      if (key in common) throw collision(type, key, 'all providers have');
      const { owner, node: other } = keys.get(key) ?? { owner: type, node };
      const { description: sentences = '', ...accepted }: SchemaNode = other;
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
