import { FORMAT_NAMES } from '@nodepool-builder/image-builder';
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

/** One of `providers`. */
export const PROVIDER_SCHEMA: SchemaNode = {
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
      description:
        'A cloud of `clouds.yaml`. Default: that of `OS_CLOUD` or of the other variables `OS_*`, below the credentials here.',
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
        'Seconds that an upload may take, with the conversion before it. Without it: as long as it moves on, and an hour ' +
        'for the cloud to take it in.',
    },
    'upload-retry-limit': {
      type: 'number',
      minimum: 0,
      default: 60,
      description:
        'For `type: openstack`: seconds from the first failure of an upload until its last retry begins; then the job ' +
        'fails. 0: no retry. The manager asks for the upload again (`manager.retry-delay`).',
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
      ...LATER_PROVIDER_KEYS,
    ),
  },
};
