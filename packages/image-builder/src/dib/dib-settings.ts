import type { ObjectSchema, SettingsOf } from '../settings-schema.ts';

/** Keys of a disk image that diskimage-builder builds. */
export const DIB_SETTINGS = {
  type: 'object',
  properties: {
    elements: {
      type: ['array', 'string', 'null'],
      format: 'words',
      items: { type: 'string' },
      description: 'Elements for disk-image-create. A string is split as a shell does.',
    },
    'qemu-img-options': {
      type: 'string',
      description:
        'For `--qemu-img-options` of disk-image-create; an empty text leaves the option out. Default: `compat=0.10` ' +
        'if qcow2 is the only format that qemu-img makes.',
    },
    'dib-cmd': {
      type: 'string',
      minLength: 1,
      description: 'Program that gets the arguments of disk-image-create. Default: `disk-image-create`.',
    },
  },
} as const satisfies ObjectSchema;

export type DibSettings = SettingsOf<typeof DIB_SETTINGS>;
