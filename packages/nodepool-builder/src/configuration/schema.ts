import { FORMAT_NAMES } from '@nodepool-builder/image-builder';
import { GEARMAN_SERVER_SCHEMA } from './gearman-server.ts';
import { ON_INSTANCE_SCHEMA } from './on-instance-schema.ts';
import type { ProviderModules } from './provider-schema.ts';
import { providerSchema } from './provider-schema.ts';
import { elsewhere, NAME, PATH, type SchemaNode } from './schema-node.ts';
import { VALIDATION_SCHEMA } from './validation-schema.ts';
import { ZUUL_IMAGES_SCHEMA } from './zuul-images-schema.ts';

const OPTIONAL_PATH: SchemaNode = { type: ['string', 'null'] };

/** What `nodepool-builder manage` goes by besides what it shares with the builders. */
const MANAGER: SchemaNode = {
  type: 'object',
  additionalProperties: false,
  properties: {
    store: {
      ...NAME,
      description:
        'Where the state of builds and uploads is kept: a file of SQLite, or a database of PostgreSQL ' +
        '(`postgresql://user@host/database`) where several managers stand by for each other. Default: ' +
        '`.nodepool-builder/manager.sqlite` in `images-dir`.',
    },
    'retry-delay': {
      type: 'number',
      exclusiveMinimum: 0,
      default: 60,
      description:
        'Seconds from a failed build or upload to the next try; doubled with each further failure.',
    },
    'longest-retry-delay': {
      type: 'number',
      exclusiveMinimum: 0,
      default: 3600,
      description: 'The longest such pause, in seconds.',
    },
    'leak-interval': {
      type: 'number',
      exclusiveMinimum: 0,
      default: 600,
      description: 'Seconds between two looks for images that nobody knows of. What both see is removed.',
    },
    'absence-limit': {
      type: 'number',
      exclusiveMinimum: 0,
      default: 1800,
      description:
        'Seconds for which no builder may offer an image that a provider needs, until it is built anew.',
    },
  },
};

const CRON: SchemaNode = {
  type: ['object', 'null'],
  description: 'When things are due, as cron expressions in local time.',
  properties: {
    'image-update': {
      type: 'string',
      description:
        'When the manager has images built anew that have neither `rebuild-age` nor `rebuild-cron`.',
    },
  },
};

const DISKIMAGE: SchemaNode = {
  type: 'object',
  required: ['name'],
  additionalProperties: false,
  properties: {
    name: { ...NAME, description: 'Offered to Gearman as `image-build:<name>`.' },
    parent: {
      type: ['string', 'null'],
      description:
        'The disk image that this one inherits from: its elements come first, its `env-vars` are added to, and every ' +
        'other value holds unless the entry has one of its own.',
    },
    abstract: {
      type: 'boolean',
      default: false,
      description: 'It is never built, and no provider may name it; others inherit from it.',
    },
    builder: {
      ...NAME,
      default: 'dib',
      description:
        'Which builder makes it: `dib` (diskimage-builder), `on-instance` (on a running machine), or one that your own ' +
        'program brings.',
    },
    'on-instance': ON_INSTANCE_SCHEMA,
    elements: {
      type: ['array', 'string', 'null'],
      items: { type: 'string' },
      description: 'Elements for disk-image-create; a string is split as a shell would.',
    },
    release: { description: '`DIB_RELEASE`; a number becomes text.' },
    'env-vars': {
      description:
        'Added to the environment of disk-image-create; values are strings. What is no mapping is ignored.',
    },
    'qemu-img-options': {
      type: 'string',
      description:
        'For `--qemu-img-options` of disk-image-create; an empty text leaves the option out. Default: `compat=0.10` ' +
        'where qcow2 is the only format that qemu-img makes.',
    },
    formats: {
      type: ['array', 'null'],
      items: { enum: FORMAT_NAMES },
      description: 'Formats to build besides those that the providers of the image take.',
    },
    pause: {
      type: 'boolean',
      default: false,
      description:
        'Not offered for the time being: its jobs wait at the job server, or go to another builder.',
    },
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
    validate: VALIDATION_SCHEMA,
    options: { type: 'object', description: 'Whatever a builder of your own wants to know.' },
    'rebuild-age': {
      type: 'number',
      exclusiveMinimum: 0,
      description:
        'Age in seconds at which the manager has it built anew. Default: 86400, unless a cron expression says when.',
    },
    'rebuild-cron': {
      type: 'string',
      description: 'When the manager has it built anew: a cron expression, in local time.',
    },
    keep: {
      type: 'integer',
      minimum: 1,
      default: 2,
      description: 'How many good ones the manager keeps, on disk and in each provider.',
    },
    ...elsewhere('username', 'python-path', 'shell-type'),
  },
};

const SCHEMA = {
  type: 'object',
  required: ['images-dir'],
  additionalProperties: false,
  properties: {
    'images-dir': { ...PATH, description: 'Where the images are kept. One builder owns it.' },
    'elements-dir': { ...OPTIONAL_PATH, description: '`ELEMENTS_PATH` of disk-image-create.' },
    'script-dir': { ...OPTIONAL_PATH, description: '`NODEPOOL_SCRIPTDIR` of disk-image-create.' },
    'build-log-dir': {
      ...PATH,
      description: 'Where the log of each build goes. Default: `.nodepool-builder/logs` in `images-dir`.',
    },
    'build-log-size': {
      type: 'integer',
      minimum: 1,
      default: 64,
      description:
        'The most that the log of a build takes, in MiB. Of a longer one the beginning and the end are kept.',
    },
    'build-environment': {
      type: ['array', 'null'],
      items: NAME,
      description:
        'Names of variables of the daemon that builds and hooks get besides [those that they always get]' +
        '(#environment-of-builds-and-hooks), as in `[VAULT_TOKEN, OS_*]`.',
    },
    'build-log-retention': {
      type: 'integer',
      minimum: 1,
      default: 7,
      description: 'How many logs of each disk image are kept.',
    },
    'virtual-size-limit': {
      type: 'number',
      exclusiveMinimum: 0,
      default: 256,
      description:
        'The largest disk that is converted, or taken from Zuul, in GiB as a guest sees it: a file of some kilobytes ' +
        'can stand for terabytes.',
    },
    'gearman-servers': {
      type: ['array', 'null'],
      items: GEARMAN_SERVER_SCHEMA,
      description: 'The job servers. Without them the daemon runs one of its own on loopback.',
    },
    plugins: {
      type: ['array', 'null'],
      items: NAME,
      description:
        'Modules with further kinds of builders and providers: names of npm packages, or paths of JavaScript or TypeScript ' +
        'files. Packages are looked up from the directory of this file, then beside nodepool-builder. A change takes ' +
        'effect after a restart.',
    },
    diskimages: {
      type: ['array', 'null'],
      items: DISKIMAGE,
      description: 'The images that can be built here.',
    },
    'zuul-images': ZUUL_IMAGES_SCHEMA,
    providers: {
      type: ['array', 'null'],
      description: 'Where images are uploaded to, and where machines run.',
    },
    cron: CRON,
    manager: { ...MANAGER, description: 'What `nodepool-builder manage` goes by.' },
    ...elsewhere(
      'labels',
      'targets',
      'zmq-publishers',
      'zookeeper-servers',
      'dburi',
      'max-hold-age',
      'webapp',
      'diskimage-defaults',
    ),
  },
} satisfies SchemaNode;

const SCHEMAS = new WeakMap<ProviderModules, SchemaNode>();

/**
 * `nodepool.yaml`, as far as a builder reads it: types, defaults and a sentence on each key. There is one object for the
 * same modules.
 */
export function configurationSchema(modules: ProviderModules): SchemaNode {
  const known = SCHEMAS.get(modules);
  if (known !== undefined) return known;
  const { properties } = SCHEMA;
  const providers = { ...properties.providers, items: providerSchema(modules) };
  const schema = { ...SCHEMA, properties: { ...properties, providers } };
  SCHEMAS.set(modules, schema);
  return schema;
}
