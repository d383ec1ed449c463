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
        'Store of the records of builds and uploads: an SQLite file, or a PostgreSQL database ' +
        '(`postgresql://user@host/database`), which several managers can share. Default: ' +
        '`.nodepool-builder/manager.sqlite` in `images-dir`.',
    },
    'retry-delay': {
      type: 'number',
      exclusiveMinimum: 0,
      default: 60,
      description: 'Seconds from a failed build or upload to its retry. Each further failure doubles them.',
    },
    'longest-retry-delay': {
      type: 'number',
      exclusiveMinimum: 0,
      default: 3600,
      description: 'Maximum of these seconds.',
    },
    'leak-interval': {
      type: 'number',
      exclusiveMinimum: 0,
      default: 600,
      description: 'Seconds between two scans for orphans. An orphan that two scans find is deleted.',
    },
    'absence-limit': {
      type: 'number',
      exclusiveMinimum: 0,
      default: 1800,
      description:
        'Seconds after which an image that a provider needs, and that no builder offers, is rebuilt.',
    },
  },
};

const CRON: SchemaNode = {
  type: ['object', 'null'],
  description: 'Schedules, as cron expressions in local time.',
  properties: {
    'image-update': {
      type: 'string',
      description: 'When the manager has images rebuilt that have neither `rebuild-age` nor `rebuild-cron`.',
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
    'images-dir': { ...PATH, description: 'Directory of the images. One process owns it.' },
    'elements-dir': { ...OPTIONAL_PATH, description: '`ELEMENTS_PATH` of disk-image-create.' },
    'script-dir': { ...OPTIONAL_PATH, description: '`NODEPOOL_SCRIPTDIR` of disk-image-create.' },
    'build-log-dir': {
      ...PATH,
      description: 'Directory of the build logs. Default: `.nodepool-builder/logs` in `images-dir`.',
    },
    'build-log-size': {
      type: 'integer',
      minimum: 1,
      default: 64,
      description: 'Size limit of a build log, in MiB. Of a longer log, the beginning and the end are kept.',
    },
    'build-environment': {
      type: ['array', 'null'],
      items: NAME,
      description:
        'Names of further variables of the daemon that builds and hooks get, besides [the usual ' +
        'ones](#environment-of-builds-and-hooks): `[VAULT_TOKEN, OS_*]`.',
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
        'The largest disk that is converted or imported, in GiB as a guest sees it: a file of some kilobytes ' +
        'can stand for terabytes.',
    },
    'gearman-servers': {
      type: ['array', 'null'],
      items: GEARMAN_SERVER_SCHEMA,
      description: 'Job servers. Default: the daemon runs its own on loopback.',
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
      description: 'Images that this builder can build.',
    },
    ...sectionSchemas(modules),
    providers: {
      type: ['array', 'null'],
      items: providerSchema(modules.providers),
      description: 'Places to upload images to, and to run machines in.',
    },
    cron: CRON,
    manager: { ...MANAGER, description: 'Settings of the manager.' },
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
