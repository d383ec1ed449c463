import type { SchemaNode } from './schema-node.ts';

/** `validate` of a disk image. */
export const VALIDATION_SCHEMA: SchemaNode = {
  type: 'object',
  additionalProperties: false,
  description: 'What an image has to stand before it is published; one that does not fails its build.',
  properties: {
    hook: {
      type: ['array', 'string'],
      items: { type: 'string' },
      description:
        'A command; a string is split as a shell would, but no shell runs it. The path of the image is its last ' +
        'argument, the raw one if there is one, else the qcow2. `NODEPOOL_IMAGE_ID`, `NODEPOOL_DISKIMAGE` and the ' +
        'path of each format (`NODEPOOL_IMAGE_QCOW2`) are in its environment. The image is good if it ends with 0.',
    },
    boot: {
      type: 'object',
      required: ['expect'],
      additionalProperties: false,
      description:
        'Boots the image with qemu-system-x86_64, by its BIOS and without a network. It stays as it is, whatever the ' +
        'machine writes.',
      properties: {
        expect: {
          type: 'string',
          minLength: 1,
          description:
            'A regular expression, as JavaScript has them. A line of the serial console, or a prompt, has to match it.',
        },
        timeout: {
          type: 'number',
          exclusiveMinimum: 0,
          maximum: 86_400,
          default: 600,
          description: 'Seconds in which it has to.',
        },
        memory: { type: 'integer', minimum: 1, default: 1024, description: 'Of the machine, in MiB.' },
        accelerator: {
          enum: ['kvm', 'tcg'],
          description:
            'What runs the machine. Default: `kvm`, and if QEMU fails with it `tcg`, which takes many times as long.',
        },
      },
    },
  },
};
