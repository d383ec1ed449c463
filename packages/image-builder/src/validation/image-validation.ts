import type { BuildLog } from '../build/build-log.ts';
import type { LoggedCommand } from '../build/logged-command.ts';
import type { BuildContext } from '../context.ts';
import { ImageError } from '../errors.ts';
import { FORMAT_NAMES, formatRow, type ImageFormat } from '../formats.ts';
import { type BootValidation, bootImage } from './boot.ts';
import { runHook } from './hook.ts';

/** Tests that an image must pass before it is published. */
export interface ImageValidation {
  /**
   * A command and its first arguments. Its last argument is the path of the image: the raw one if it exists, or else the
   * qcow2. Its environment has `NODEPOOL_IMAGE_ID`, `NODEPOOL_DISKIMAGE` and the path of each format, as in
   * `NODEPOOL_IMAGE_QCOW2`. The image is good if the command exits with 0.
   */
  readonly hook?: readonly string[];
  readonly boot?: BootValidation;
}

/** Resources of a validation. */
export interface ValidationParts {
  readonly context: BuildContext;
  readonly run: LoggedCommand;
  readonly log: BuildLog;
}

/** Formats in the order of preference for a validation: a raw image needs no tools. */
const BEST_FIRST: readonly ImageFormat[] = ['raw', ...FORMAT_NAMES];

/**
 * Refuses a validation that no image in these formats can pass.
 *
 * @throws ImageError `format-unavailable` for a boot without a format that QEMU reads
 */
export function checkValidation(
  name: string,
  { boot }: ImageValidation,
  formats: readonly ImageFormat[],
): void {
  if (boot === undefined || formats.some(isBootable)) return;
  throw new ImageError(
    'format-unavailable',
    `disk image "${name}" has a boot test, but is built as ${formats.join(', ')}, ` +
      'which QEMU cannot boot; add raw or qcow2 to its formats',
  );
}

/**
 * Validates an image.
 *
 * @throws ImageError `validation-failed`, `command-not-found`
 * @throws the reason of the build's signal
 */
export async function validateImage({ hook, boot }: ImageValidation, parts: ValidationParts): Promise<void> {
  const { context } = parts;
  const formats = BEST_FIRST.filter((format) => context.formats.includes(format));
  const [best] = formats;
  const bootable = formats.find(isBootable);
  if (hook !== undefined && best !== undefined) {
    context.log('validating the image with its hook');
    await runHook(hook, best, parts);
  }
  if (boot !== undefined && bootable !== undefined) {
    context.log('validating the image with a boot test');
    await bootImage(boot, bootable, parts);
  }
}

function isBootable(format: ImageFormat): boolean {
  return formatRow(format).qemuDriver !== undefined;
}
