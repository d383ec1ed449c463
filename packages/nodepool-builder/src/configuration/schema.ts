import { FORMAT_NAMES } from '@nodepool-builder/image-builder';

/** A node of a JSON Schema, as far as the configuration uses it. */
export interface SchemaNode {
  readonly type?: string | readonly string[];
  /** Printed in the documentation. */
  readonly description?: string;
  readonly default?: string | number;
  readonly properties?: Readonly<Record<string, SchemaNode>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean;
  readonly items?: SchemaNode;
  readonly enum?: readonly unknown[];
  readonly minLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
}

/** A key that belongs to another part of nodepool: it is accepted, and nothing is read from it. */
const ELSEWHERE: SchemaNode = {};

function elsewhere(...keys: readonly string[]): Record<string, SchemaNode> {
  return Object.fromEntries(keys.map((key) => [key, ELSEWHERE]));
}

const NAME: SchemaNode = { type: 'string', minLength: 1 };
const PATH: SchemaNode = { type: 'string', minLength: 1 };

const GEARMAN_SERVER: SchemaNode = {
  type: 'object',
  required: ['host'],
  additionalProperties: false,
  properties: {
    host: { ...NAME, description: 'Name or address of a job server.' },
    port: { type: 'integer', minimum: 1, maximum: 65_535, default: 4730, description: 'Its port.' },
  },
};

const DISKIMAGE: SchemaNode = {
  type: 'object',
  required: ['name'],
  additionalProperties: false,
  properties: {
    name: { ...NAME, description: 'Offered to Gearman as `image-build:<name>`.' },
    builder: {
      ...NAME,
      default: 'dib',
      description: 'Which builder makes it: `dib` (diskimage-builder), or one that your own program brings.',
    },
    elements: {
      type: ['array', 'string', 'null'],
      items: { type: 'string' },
      description: 'Elements for disk-image-create; a string is split as a shell would.',
    },
    release: { description: '`DIB_RELEASE`.' },
    'env-vars': { description: 'Added to the environment of disk-image-create; values are strings.' },
    'build-timeout': {
      type: 'number',
      minimum: 1,
      description: 'Seconds after which a build is stopped. Without it there is no limit.',
    },
    'dib-cmd': {
      ...PATH,
      default: 'disk-image-create',
      description: 'Runs instead, with the same arguments.',
    },
    options: { type: 'object', description: 'Whatever a builder of your own wants to know.' },
    ...elsewhere('pause', 'rebuild-age', 'formats', 'username', 'python-path', 'keep', 'parent', 'abstract'),
  },
};

const PROVIDER_IMAGE: SchemaNode = {
  type: 'object',
  required: ['name'],
  additionalProperties: false,
  properties: {
    name: {
      ...NAME,
      description: "The image's name in the provider; `image-name` of an `image-upload` job.",
    },
    diskimage: { ...NAME, description: 'The `diskimages[].name` that is uploaded.' },
    meta: { type: ['object', 'null'], description: 'Properties to store with the uploaded image.' },
    ...elsewhere(
      'min-ram',
      'base-image',
      'name-filter',
      'setup',
      'username',
      'user-home',
      'private-key',
      'config-drive',
      'key-name',
      'pause',
    ),
  },
};

const PROVIDER: SchemaNode = {
  type: 'object',
  required: ['name', 'images'],
  additionalProperties: false,
  properties: {
    name: { ...NAME, description: '`provider` of an `image-upload` job.' },
    type: {
      enum: ['openstack', 'directory'],
      default: 'openstack',
      description: 'What kind of provider it is.',
    },
    'image-type': {
      enum: FORMAT_NAMES,
      default: 'qcow2',
      description: 'The disk format that it takes; it is built, or else converted to before the upload.',
    },
    directory: { ...PATH, description: 'For `type: directory`: the directory that serves. It must exist.' },
    images: { type: ['array', 'null'], items: PROVIDER_IMAGE, description: 'The images that it uses.' },
    ...elsewhere(
      'cloud',
      'region-name',
      'api-timeout',
      'service-type',
      'service-name',
      'username',
      'password',
      'auth-url',
      'project-id',
      'project-name',
      'rate',
      'template-hostname',
      'max-servers',
      'min-ram',
      'keypair',
      'pool',
      'networks',
      'boot-timeout',
      'launch-timeout',
      'ipv6-preferred',
      'clean-floating-ips',
      'availability-zones',
      'nodepool-id',
    ),
  },
};

/** `nodepool.yaml`, as far as a builder reads it: types, defaults and a sentence on each key. */
export const CONFIGURATION_SCHEMA: SchemaNode = {
  type: 'object',
  required: ['images-dir'],
  additionalProperties: false,
  properties: {
    'images-dir': { ...PATH, description: 'Where the images are kept. One builder owns it.' },
    'elements-dir': { ...PATH, description: '`ELEMENTS_PATH` of disk-image-create.' },
    'script-dir': { ...PATH, description: '`NODEPOOL_SCRIPTDIR` of disk-image-create.' },
    'build-log-dir': {
      ...PATH,
      description: 'Where the log of each build goes. Default: `.nodepool-builder/logs` in `images-dir`.',
    },
    'gearman-servers': {
      type: ['array', 'null'],
      items: GEARMAN_SERVER,
      description: 'The job servers. Without them the daemon runs one of its own on loopback.',
    },
    diskimages: {
      type: ['array', 'null'],
      items: DISKIMAGE,
      description: 'The images that can be built here.',
    },
    providers: { type: ['array', 'null'], items: PROVIDER, description: 'Where images are uploaded to.' },
    ...elsewhere(
      'labels',
      'targets',
      'cron',
      'zmq-publishers',
      'zookeeper-servers',
      'dburi',
      'build-log-retention',
      'max-hold-age',
      'webapp',
      'diskimage-defaults',
    ),
  },
};
