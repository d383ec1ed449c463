import { FORMAT_NAMES } from '@nodepool-builder/image-builder';
import { IMAGE_FILTERS_SCHEMA } from './image-filters.ts';
import { ON_INSTANCE_SCHEMA } from './on-instance-schema.ts';
import { VALIDATION_SCHEMA } from './validation-schema.ts';
import { ZUUL_IMAGES_SCHEMA } from './zuul-images-schema.ts';

/** A node of a JSON Schema, as far as the configuration uses it. */
export interface SchemaNode {
  readonly type?: string | readonly string[];
  /** Printed in the documentation. */
  readonly description?: string;
  readonly default?: string | number | boolean;
  readonly properties?: Readonly<Record<string, SchemaNode>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | SchemaNode;
  readonly items?: SchemaNode;
  readonly enum?: readonly unknown[];
  readonly minLength?: number;
  readonly minItems?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly const?: string;
  readonly if?: SchemaNode;
  readonly else?: SchemaNode;
}

/** A key that belongs to another part of nodepool: it is accepted, and nothing is read from it. */
const ELSEWHERE: SchemaNode = {};

function elsewhere(...keys: readonly string[]): Record<string, SchemaNode> {
  return Object.fromEntries(keys.map((key) => [key, ELSEWHERE]));
}

const NAME: SchemaNode = { type: 'string', minLength: 1 };
const PATH: SchemaNode = { type: 'string', minLength: 1 };
const OPTIONAL_PATH: SchemaNode = { type: ['string', 'null'] };
/** Text that YAML may take for a number. */
const SCALAR: SchemaNode = { type: ['string', 'number', 'null'] };

const GEARMAN_SERVER: SchemaNode = {
  type: 'object',
  required: ['host'],
  additionalProperties: false,
  properties: {
    host: { ...NAME, description: 'Name or address of a job server.' },
    port: { type: 'integer', minimum: 1, maximum: 65_535, default: 4730, description: 'Its port.' },
  },
};

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
    ...elsewhere('username', 'python-path', 'parent', 'abstract', 'qemu-img-options'),
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
    diskimage: { type: ['string', 'null'], description: 'The `diskimages[].name` that is uploaded.' },
    meta: {
      type: ['object', 'null'],
      description: 'Properties to store with the uploaded image; values become text.',
    },
    pause: {
      type: 'boolean',
      default: false,
      description: 'The manager uploads it no more for the time being; what is there stays.',
    },
    'image-filters': IMAGE_FILTERS_SCHEMA,
    'base-image': {
      ...SCALAR,
      description:
        'Without `diskimage`: the image is made on a machine that boots this, as nodepool did; `on-instance` of ' +
        '`diskimages` says more. It is offered as `image-build:<name>`, made in the first provider that has it, and ' +
        'uploaded to the others.',
    },
    setup: { ...SCALAR, description: 'With `base-image`: the script of `script-dir` that is run there.' },
    username: { ...SCALAR, description: 'With `base-image`: who logs in. Default: `root`.' },
    'private-key': {
      ...SCALAR,
      description: 'With `base-image`: a private key that it lets in. Default: one is made for the build.',
    },
    'min-ram': {
      ...SCALAR,
      description: 'With `base-image`: the least memory that the machine may have, in MiB.',
    },
    'name-filter': {
      ...SCALAR,
      description: 'With `base-image`: a part of the name of the flavors to choose from.',
    },
    ...elsewhere('user-home', 'config-drive', 'key-name', 'reset'),
  },
};

const PROVIDER: SchemaNode = {
  type: 'object',
  required: ['name'],
  if: { properties: { type: { const: 'qemu' } }, required: ['type'] },
  else: { required: ['images'] },
  additionalProperties: false,
  properties: {
    name: { ...NAME, description: '`provider` of an `image-upload` job.' },
    type: {
      enum: ['openstack', 'directory', 'qemu'],
      default: 'openstack',
      description:
        'What kind of provider it is. `qemu` takes no images: it runs machines on this host for `on-instance`.',
    },
    'image-type': {
      enum: [...FORMAT_NAMES, null],
      description:
        'The disk format that it takes; it is built, or else converted to before the upload. Default: `image_format` ' +
        'of the cloud, which is `qcow2` unless its profile says otherwise.',
    },
    directory: { ...PATH, description: 'For `type: directory`: the directory that serves. It must exist.' },
    memory: {
      type: 'integer',
      minimum: 1,
      default: 1024,
      description: 'For `type: qemu`: of a machine, in MiB, unless its image wants more (`min-ram`).',
    },
    cpus: {
      type: 'integer',
      minimum: 1,
      default: 2,
      description: 'For `type: qemu`: processors of a machine.',
    },
    accelerator: {
      enum: ['kvm', 'tcg'],
      description:
        'For `type: qemu`: what runs a machine. Default: `kvm`, and if QEMU fails with it `tcg`, which takes many times ' +
        'as long.',
    },
    'direct-boot': {
      type: 'object',
      required: ['kernel', 'command-line'],
      additionalProperties: false,
      description: 'For `type: qemu`, and base images without a boot loader. Default: the BIOS boots.',
      properties: {
        kernel: { ...PATH, description: 'The kernel to boot.' },
        initrd: { ...PATH, description: 'Its initial RAM disk.' },
        'command-line': {
          ...NAME,
          description: 'Its arguments: `root=/dev/vda console=ttyS0`.',
        },
      },
    },
    cloud: {
      type: ['string', 'null'],
      description: 'A cloud of `clouds.yaml`. Default: the credentials here, or else the variables `OS_*`.',
    },
    'region-name': { ...SCALAR, description: 'One of its regions.' },
    'auth-url': {
      ...SCALAR,
      description: "Keystone's address, in place of what `cloud` says; so are those below.",
    },
    username: { ...SCALAR, description: 'The user.' },
    password: { ...SCALAR, description: "The user's password." },
    'project-id': { ...SCALAR, description: 'The project, by its id.' },
    'project-name': { ...SCALAR, description: 'The project, by its name.' },
    'api-timeout': {
      type: ['number', 'null'],
      exclusiveMinimum: 0,
      description: "Seconds that a request may stay without an answer. Default: the cloud's.",
    },
    rate: {
      type: 'number',
      minimum: 0,
      default: 1,
      description:
        'Seconds between the beginnings of two requests. An upload does not hold up other requests.',
    },
    'template-hostname': {
      ...NAME,
      default: 'template-{image.name}-{timestamp}',
      description:
        'What an uploaded image is called. Fields: `{image.name}`, `{image.id}`, `{timestamp}`, `{provider.name}` ' +
        'and other keys of the provider.',
    },
    'bandwidth-limit': {
      type: 'integer',
      minimum: 1,
      description: 'Bytes a second, of all uploads to it together. Without it there is no limit.',
    },
    'image-import': {
      enum: ['glance-direct', 'web-download'],
      description:
        'The import method of Glance by which images come into the cloud. Default: a plain PUT of the file, or ' +
        "a task where the cloud's profile wants one.",
    },
    'image-import-url': {
      type: 'string',
      minLength: 1,
      description: 'For `image-import: web-download`: where `images-dir` is served, as the cloud sees it.',
    },
    'image-upload-timeout': {
      type: 'number',
      exclusiveMinimum: 0,
      description:
        'Seconds that an upload may take. Without it: as long as it moves on, and an hour for the cloud to take it in.',
    },
    'post-upload-hook': {
      ...PATH,
      description:
        'A program that runs behind each upload, before its job is answered: its arguments are the name of the ' +
        "provider, the cloud's id of the image, and the path of the local file: the one that was uploaded, or the first " +
        'of the image if none had to be. If it does not end with 0, or not in the time of `image-upload-timeout`, the ' +
        'image is deleted there and the job fails.',
    },
    pause: {
      type: 'boolean',
      default: false,
      description: 'The manager uploads nothing to it for the time being; what is there stays.',
    },
    networks: {
      description:
        'The networks of a machine that runs for `on-instance`, each by its name, or as a mapping with `net-id`, ' +
        '`net-label` or `name`. Default: the only one that the project has.',
    },
    pool: {
      ...SCALAR,
      description: 'The network that such a machine gets a floating IP from. Default: it gets none.',
    },
    'ipv6-preferred': {
      description: 'Whether such a machine is rather reached by IPv6, if it has an address. Default: no.',
    },
    images: {
      type: ['array', 'null'],
      items: PROVIDER_IMAGE,
      description: 'The images that it uses. Only `type: qemu` may do without.',
    },
    ...elsewhere(
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
    'elements-dir': { ...OPTIONAL_PATH, description: '`ELEMENTS_PATH` of disk-image-create.' },
    'script-dir': { ...OPTIONAL_PATH, description: '`NODEPOOL_SCRIPTDIR` of disk-image-create.' },
    'build-log-dir': {
      ...PATH,
      description: 'Where the log of each build goes. Default: `.nodepool-builder/logs` in `images-dir`.',
    },
    'build-log-retention': {
      type: 'integer',
      minimum: 1,
      default: 7,
      description: 'How many logs of each disk image are kept.',
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
    'zuul-images': ZUUL_IMAGES_SCHEMA,
    providers: {
      type: ['array', 'null'],
      items: PROVIDER,
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
};
