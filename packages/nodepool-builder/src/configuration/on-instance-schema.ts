import type { SchemaNode } from './schema-node.ts';

const TEXT: SchemaNode = { type: 'string', minLength: 1 };
const SECONDS: SchemaNode = { type: 'number', exclusiveMinimum: 0 };

const WINRM: SchemaNode = {
  type: 'object',
  required: ['password-file'],
  additionalProperties: false,
  description: 'For `connection: winrm`. It goes by HTTPS.',
  properties: {
    port: { type: 'integer', minimum: 1, maximum: 65_535, default: 5986, description: 'Its port.' },
    'password-file': { ...TEXT, description: 'A file that holds the password of `username`.' },
    'ca-file': {
      ...TEXT,
      description:
        'Certificates of authorities that the certificate of the machine is verified with, as PEM.',
    },
    fingerprint: {
      ...TEXT,
      description:
        'SHA-256 fingerprint of the certificate of the machine, as `openssl x509 -fingerprint -sha256` prints it, or ' +
        'as `SHA256:` and base64. Without it and without `ca-file`, the console of the machine has to announce the ' +
        'certificate; the password is sent to no other machine.',
    },
  },
};

const STEP: SchemaNode = {
  type: ['string', 'object'],
  required: ['run'],
  additionalProperties: false,
  properties: {
    name: { ...TEXT, description: 'What messages call it. Default: what is run.' },
    run: { ...TEXT, description: 'Read by the shell, in the directory that the scripts were put into.' },
  },
};

/** `on-instance` of a disk image. */
export const ON_INSTANCE_SCHEMA: SchemaNode = {
  type: 'object',
  required: ['base-image'],
  additionalProperties: false,
  description: 'For `builder: on-instance`: how the image is made on a running machine.',
  properties: {
    provider: {
      ...TEXT,
      default: 'qemu',
      description:
        'Which of `providers` runs the machine, of type `openstack` or `qemu`. The default needs no entry there: it is ' +
        'QEMU on this host.',
    },
    'base-image': {
      ...TEXT,
      description: 'What the machine boots: a path with QEMU, else a name or an id in the provider.',
    },
    'min-ram': {
      type: 'integer',
      minimum: 1,
      description: 'The least memory that the machine may have, in MiB. Default: as the provider has it.',
    },
    'name-filter': {
      ...TEXT,
      description: 'A part of the name of the flavors to choose from, where there are flavors.',
    },
    username: {
      ...TEXT,
      description: 'Who logs in. Default: `root`, or `Administrator` with `shell: powershell`.',
    },
    'private-key': {
      ...TEXT,
      description:
        'A private key that the base image lets in. Default: a key pair that is made for the build.',
    },
    connection: {
      enum: ['ssh', 'winrm'],
      default: 'ssh',
      description: 'How the machine is reached.',
    },
    winrm: WINRM,
    shell: {
      enum: ['posix', 'powershell'],
      description: 'What reads the steps. Default: `posix`, or `powershell` with `connection: winrm`.',
    },
    setup: {
      ...TEXT,
      description:
        "A script of `script-dir`, run before all steps with the image's name as its last argument, as nodepool did.",
    },
    steps: {
      type: 'array',
      items: STEP,
      description:
        'What is run, one after the other: a command, or `run` with a `name`. Each has to end with 0.',
    },
    sysprep: {
      type: 'boolean',
      default: false,
      description:
        'Generalise Windows with sysprep behind the steps, and wait for the shut-down that follows.',
    },
    'boot-timeout': {
      ...SECONDS,
      default: 600,
      description: 'Seconds from the launch until somebody can log in.',
    },
    'stop-timeout': {
      ...SECONDS,
      default: 300,
      description: 'Seconds from the request to power off until it is off.',
    },
    'keep-on-failure': {
      ...SECONDS,
      description:
        'Seconds for which the machine of a failed build is kept, so that one can look what went wrong; the log says how ' +
        'to log in. Without it the machine goes at once.',
    },
    'after-restart': {
      enum: ['destroy', 'resume'],
      default: 'destroy',
      description:
        'What becomes of the machine of a build that the end of the daemon has cut short: `resume` keeps it for a job ' +
        'that comes again for the same image, which goes on behind the last step that was done.',
    },
  },
};
