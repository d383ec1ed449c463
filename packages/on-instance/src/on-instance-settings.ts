import type { ObjectSchema, SettingsOf } from '@nodepool-builder/image-builder';
import { IMAGE_FILTERS } from '@nodepool-builder/image-builder/internal';

const TEXT = { type: 'string', minLength: 1 } as const;
const FILE = { ...TEXT, format: 'path' } as const;
const SECONDS = { type: 'number', exclusiveMinimum: 0 } as const;

const WINRM = {
  type: 'object',
  additionalProperties: false,
  description: 'Connects by WinRM over HTTPS. Default: by SSH.',
  properties: {
    port: { type: 'integer', minimum: 1, maximum: 65_535, default: 5986, description: 'Port.' },
    'password-file': {
      ...FILE,
      description:
        'File with the password of `username`. Default: the password that the base image sets at its first boot, with a ' +
        'provider that reports it (`aws`).',
    },
    'ca-file': {
      ...FILE,
      description: "PEM file with the certificates of authorities that verify the instance's certificate.",
    },
    fingerprint: {
      ...TEXT,
      description:
        "SHA-256 fingerprint of the instance's certificate, as `openssl x509 -fingerprint -sha256` prints it, or as " +
        '`SHA256:` and base64. Without `fingerprint` and `ca-file`, the instance must print the fingerprint on its ' +
        'console; the password is sent to no other machine.',
    },
  },
} as const;

const BLOCK = {
  type: 'object',
  required: ['base-image'],
  additionalProperties: false,
  description: 'For `builder: on-instance`: how to build the image on a running instance.',
  $comment: 'set at least its base-image, and steps or setup',
  properties: {
    provider: {
      ...TEXT,
      default: 'qemu',
      description:
        'Entry of `providers` that runs the instance. The default, QEMU on this host, needs no entry.',
    },
    'base-image': {
      type: ['string', 'object'],
      minLength: 1,
      additionalProperties: false,
      $comment: 'write one of image-filters and cloud-image',
      properties: {
        'image-filters': {
          ...IMAGE_FILTERS,
          description:
            'The latest image that matches these filters when the build starts. Default owner: `self`.',
        },
        'cloud-image': {
          ...TEXT,
          description: 'Name in `cloud-images` of the provider, or of the top level.',
        },
      },
      description:
        'Image that the instance boots: a path with QEMU, otherwise a name or an id in the provider. A mapping ' +
        'selects the image by filters or by its name in `cloud-images`.',
    },
    'min-ram': {
      type: 'integer',
      minimum: 1,
      description: "Minimum memory of the instance, in MiB. Default: the provider's; under QEMU, 1024.",
    },
    'name-filter': {
      ...TEXT,
      description: "Part of the flavor's name, if the provider uses flavors.",
    },
    username: {
      ...TEXT,
      description: 'User to log in as. Default: `root`, or `Administrator` with `shell: powershell`.',
    },
    'private-key': {
      ...FILE,
      description: 'Private key that the base image accepts. Default: a key pair generated for each build.',
    },
    winrm: WINRM,
    shell: {
      enum: ['posix', 'powershell'],
      description: 'Shell that runs the steps. Default: `posix`, or `powershell` with `winrm`.',
    },
    setup: {
      ...TEXT,
      description:
        "Script of `script-dir` that runs before all steps, with the image's name as its last argument, " +
        'as in nodepool.',
    },
    steps: {
      type: 'array',
      items: TEXT,
      description:
        'Commands for the shell, which run in order in the directory of the copied scripts. Each must exit with 0.',
    },
    sysprep: {
      type: 'boolean',
      default: false,
      description: 'Generalize Windows with sysprep after the steps, and wait for the shutdown.',
    },
    'boot-timeout': {
      ...SECONDS,
      default: 600,
      description: 'Timeout from the launch to the first login, in seconds.',
    },
    'stop-timeout': { ...SECONDS, default: 300, description: 'Timeout of the shutdown, in seconds.' },
    'keep-on-failure': {
      ...SECONDS,
      description:
        'Seconds for which the instance of a failed build is kept for inspection; the log shows how to log in. ' +
        'Default: the instance is deleted at once.',
    },
    'after-restart': {
      enum: ['destroy', 'resume'],
      default: 'destroy',
      description:
        "`destroy` deletes the instance of a build that the daemon's end interrupted. `resume` keeps it for the " +
        "image's next job, which resumes after the last completed step.",
    },
  },
} as const;

/** Keys of a disk image that is built on an instance. */
export const ON_INSTANCE_SETTINGS = {
  type: 'object',
  description: 'on a running instance',
  required: ['on-instance'],
  properties: { 'on-instance': BLOCK },
} as const satisfies ObjectSchema;

/** The block `on-instance` of a disk image. */
export type OnInstanceBlock = SettingsOf<typeof BLOCK>;

export type WinrmSettings = SettingsOf<typeof WINRM>;

/** Settings of the builder: the block with all defaults, and `setup` as the first step. */
export interface OnInstance extends Omit<OnInstanceBlock, 'setup'> {
  readonly username: string;
  readonly shell: NonNullable<OnInstanceBlock['shell']>;
  readonly steps: readonly string[];
}

/** Text that YAML may parse as a number. */
const SCALAR = { type: ['string', 'number', 'null'] } as const;

/** Keys of `providers[].images` that describe an image like nodepool's set-up scripts. */
export const PROVIDER_IMAGE_KEYS = {
  'base-image': {
    ...SCALAR,
    description:
      'Without `diskimage`: image that an instance boots to make this image, as in nodepool (see `on-instance` of ' +
      '`diskimages`). This image is offered as `image-build:<name>`, built in the first provider that lists it, and ' +
      'uploaded to the others.',
  },
  setup: { ...SCALAR, description: 'With `base-image`: script of `script-dir` to run on the instance.' },
  username: { ...SCALAR, description: 'With `base-image`: user to log in as. Default: `root`.' },
  'private-key': {
    ...SCALAR,
    description:
      'With `base-image`: private key that the instance accepts. Default: a key generated for the build.',
  },
  'min-ram': { ...SCALAR, description: 'With `base-image`: minimum memory of the instance, in MiB.' },
  'name-filter': { ...SCALAR, description: "With `base-image`: part of the flavor's name." },
} as const;
