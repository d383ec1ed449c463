import { FORMAT_NAMES, type ImageFormat } from '@nodepool-builder/image-builder';
import { isConvertible } from '@nodepool-builder/image-builder/module-kit';

/** Formats that can be made of files in some formats: first these, then those that qemu-img converts them to. */
export function makeableFormats(formats: readonly ImageFormat[]): readonly ImageFormat[] {
  const converted = formats.some(isConvertible) ? FORMAT_NAMES.filter(isConvertible) : [];
  return [...new Set([...formats, ...converted])];
}
