import type { Modules } from '../modules.ts';
import { diskImageSchema, sectionSchemas } from './disk-image-schema.ts';
import { GEARMAN_SERVER_SCHEMA } from './gearman-server.ts';
import { providerSchema } from './provider-schema.ts';
import { elsewhere, NAME, PATH, type SchemaNode } from './schema-node.ts';

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

const SCHEMAS = new WeakMap<Modules, SchemaNode>();

/**
 * `nodepool.yaml`, as far as a builder reads it: types, defaults and a sentence on each key. The same modules have the
 * same object, which is compiled once.
 */
export function configurationSchema(modules: Modules): SchemaNode {
  const known = SCHEMAS.get(modules);
  if (known !== undefined) return known;
  const schema = createSchema(modules);
  SCHEMAS.set(modules, schema);
  return schema;
}

const createSchema = (modules: Modules): SchemaNode => ({
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
        'The largest disk that is converted or imported, in GiB as a guest sees it: a file of some kilobytes ' +
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
      items: diskImageSchema(modules),
      description: 'The images that can be built here.',
    },
    ...sectionSchemas(modules),
    providers: {
      type: ['array', 'null'],
      items: providerSchema(modules.providers),
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
});
