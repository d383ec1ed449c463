import type { DiskImage } from '../disk-image.ts';
import { ImageError } from '../errors.ts';
import { isConvertible } from '../formats/convert.ts';
import { checkFormats, type ImageFormat } from '../formats.ts';

/**
 * Returns the formats that a builder must make: the requested ones that it can make, and, if others are requested, one
 * that can be converted to them.
 *
 * @param native formats that the builder can make; undefined for any
 * @throws ImageError `format-unknown`, `format-unavailable`
 */
export function formatsToMake(
  { name, formats }: DiskImage,
  native: readonly ImageFormat[] | undefined,
): readonly ImageFormat[] {
  checkFormats(formats);
  if (formats.length === 0) return [native?.[0] ?? 'qcow2'];
  if (native === undefined) return formats;
  const made = formats.filter((format) => native.includes(format));
  const converted = formats.filter((format) => !native.includes(format));
  const source = [...made, ...native].find(isConvertible);
  const impossible = converted.find((format) => source === undefined || !isConvertible(format));
  if (impossible !== undefined) {
    throw new ImageError(
      'format-unavailable',
      `disk image "${name}" is requested as ${impossible}, but its builder makes ${native.join(', ')}, ` +
        'which qemu-img cannot convert to it; choose another builder or another format',
    );
  }
  const needed = source !== undefined && converted.length > 0 ? [...made, source] : made;
  return [...new Set(needed)];
}
