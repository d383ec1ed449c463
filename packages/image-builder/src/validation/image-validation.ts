import { ImageError } from '../errors.ts';
import { FORMAT_NAMES, formatRow, type ImageFormat } from '../formats.ts';
import { bootImage } from './boot.ts';
import { runHook } from './hook.ts';
import type { ValidationParts } from './validation-parts.ts';
import type { ImageValidation } from './validation-settings.ts';

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
