import { FORMAT_NAMES, ImageError, type ImageFormat, isConvertible } from '@nodepool-builder/image-builder';
import type { ZuulDiskImage, ZuulImage } from '../zuul-image.ts';

/**
 * What a disk image says of the Zuul job that makes it.
 *
 * @throws ImageError `invalid-configuration`
 */
export function zuulImageOf({ name, zuul }: ZuulDiskImage): ZuulImage {
  if (zuul !== undefined) return zuul;
  throw new ImageError(
    'invalid-configuration',
    `disk image "${name}" does not say which Zuul job makes it; put it under zuul-images`,
  );
}

/** All formats that can be made of files in some formats: these, the first of them first, and those that qemu-img makes of them. */
export function makeableFormats(formats: readonly ImageFormat[]): readonly ImageFormat[] {
  const converted = formats.some(isConvertible) ? FORMAT_NAMES.filter(isConvertible) : [];
  return [...new Set([...formats, ...converted])];
}
