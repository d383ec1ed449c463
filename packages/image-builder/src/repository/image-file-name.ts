import { formatOfExtension, type ImageFormat } from '../formats.ts';

/** Parts of the name of an image file. */
export interface ImageFileName {
  readonly imageId: string;
  readonly format: ImageFormat;
}

/**
 * Splits `<image-id>.<extension>` at the last dot. Undefined for files that are not images: hidden files, checksum
 * files, unknown extensions. The id may be invalid.
 */
export function parseImageFileName(name: string): ImageFileName | undefined {
  const dot = name.lastIndexOf('.');
  const format = formatOfExtension(name.slice(dot + 1));
  return dot > 0 && !name.startsWith('.') && format !== undefined
    ? { imageId: name.slice(0, dot), format }
    : undefined;
}
