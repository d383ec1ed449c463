import type { SchemaNode } from './schema-node.ts';

/** `validate` of a disk image. */
export const VALIDATION_SCHEMA: SchemaNode = {
  type: 'object',
  additionalProperties: false,
  description: 'Tests of an image before it is published. If one fails, the build fails.',
  properties: {
    hook: {
      type: ['array', 'string'],
      items: { type: 'string' },
      description:
        'Command to run. A string is split as a shell does, but no shell runs it. Its last argument is ' +
        'the path of the image: the raw file if there is one, otherwise the qcow2. Its environment has ' +
        '`NODEPOOL_IMAGE_ID`, `NODEPOOL_DISKIMAGE` and the path of each format ' +
        '(`NODEPOOL_IMAGE_QCOW2`). The image passes if the command exits with 0.',
    },
    boot: {
      type: 'object',
      required: ['expect'],
      additionalProperties: false,
      description:
        'Boots the image with qemu-system-x86_64, with a BIOS and without a network. The image itself ' +
        'does not change.',
      properties: {
        expect: {
          type: 'string',
          minLength: 1,
          description:
            'JavaScript regular expression that a line of the serial console, or a prompt, must match.',
        },
        timeout: {
          type: 'number',
          exclusiveMinimum: 0,
          maximum: 86_400,
          default: 600,
          description: 'Time limit for the match, in seconds.',
        },
        memory: { type: 'integer', minimum: 1, default: 1024, description: 'Memory of the machine, in MiB.' },
        accelerator: {
          enum: ['kvm', 'tcg'],
          description:
            'Accelerator of QEMU. Default: `kvm`, and if QEMU fails with it, `tcg`, which takes many ' +
            'times as long.',
        },
      },
    },
  },
};
