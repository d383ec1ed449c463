import { formatOfExtension, type ImageFormat } from '../formats.ts';

/** What the name of an image file says. */
export interface ImageFileName {
  readonly imageId: string;
  readonly format: ImageFormat;
}

/**
 * Takes `<image-id>.<extension>` apart, at the last dot. Undefined for what is no image file: hidden files,
 * checksum files, unknown extensions. The id may still be one that is refused.
 */
export function parseImageFileName(name: string): ImageFileName | undefined {
  const dot = name.lastIndexOf('.');
  const format = formatOfExtension(name.slice(dot + 1));
  return dot > 0 && !name.startsWith('.') && format !== undefined
    ? { imageId: name.slice(0, dot), format }
    : undefined;
}
