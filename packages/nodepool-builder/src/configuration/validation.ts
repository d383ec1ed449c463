import type {
  Diagnostic,
  ImageValidation,
  SettingsOf,
  SettingsSchema,
} from '@nodepool-builder/image-builder';
import { readSettings } from '@nodepool-builder/image-builder/internal';
import { wordsOf } from '../yaml/values.ts';

/** `validate` of a disk image. */
export const VALIDATION_SCHEMA = {
  type: 'object',
  additionalProperties: false,
  description: 'Tests of an image before it is published. If one fails, the build fails.',
  properties: {
    hook: {
      type: ['array', 'string'],
      items: { type: 'string' },
      description:
        'Command to run. A string is split like in a shell, but no shell runs. The last argument is the path of the ' +
        'image: the raw file if it exists, otherwise the qcow2. The environment contains `NODEPOOL_IMAGE_ID`, ' +
        '`NODEPOOL_DISKIMAGE` and the path of each format (`NODEPOOL_IMAGE_QCOW2`). The image passes if the command ' +
        'exits with 0.',
    },
    boot: {
      type: 'object',
      required: ['expect'],
      additionalProperties: false,
      description:
        'Boots the image with qemu-system-x86_64, with a BIOS and without a network. The image file ' +
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
          description: 'Timeout of the match, in seconds.',
        },
        memory: { type: 'integer', minimum: 1, default: 1024, description: 'Memory of the machine, in MiB.' },
        accelerator: {
          enum: ['kvm', 'tcg'],
          description:
            'QEMU accelerator. Default: `kvm`, and if QEMU fails with it, `tcg`, which takes many ' +
            'times as long.',
        },
      },
    },
  },
} as const satisfies SettingsSchema;

/** `validate` of a disk image. */
export type ValidationSource = SettingsOf<typeof VALIDATION_SCHEMA>;

/** Reports errors in `validate` that its schema cannot express. */
export function* validationDiagnostics({ hook, boot }: ValidationSource): Iterable<Diagnostic> {
  if (hook === undefined && boot === undefined) {
    yield { pointer: '', reason: 'has neither hook nor boot', remedy: 'name one, or remove it' };
  }
  if (hook !== undefined) {
    const words = wordsOf(hook);
    if (words === undefined) {
      const reason = 'has an unmatched quote or backslash';
      yield { pointer: '/hook', reason, remedy: 'close or remove it' };
    } else if (!words[0]) {
      yield { pointer: '/hook', reason: 'names no command', remedy: 'name one, or remove it' };
    }
  }
  try {
    RegExp(boot?.expect ?? '');
  } catch (error) {
    const reason = `is not a regular expression: ${(error as SyntaxError).message}`;
    const remedy = 'correct it; put a backslash before a character to match it literally';
    yield { pointer: '/boot/expect', reason, remedy };
  }
}

/**
 * Reads a `validate` without {@link validationDiagnostics}.
 *
 * @param absolute makes a path absolute
 */
export function toValidation(
  { hook, boot }: ValidationSource,
  absolute: (path: string) => string,
): ImageValidation {
  return {
    ...(hook !== undefined && { hook: readSettings(HOOK, wordsOf(hook), absolute) }),
    ...(boot !== undefined && { boot: { ...boot, expect: new RegExp(boot.expect) } }),
  };
}

const HOOK = { type: 'array', items: { type: 'string' }, format: 'program' } as const;
