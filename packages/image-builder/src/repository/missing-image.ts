import { ImageError } from '../errors.ts';
import type { ImageFormat } from '../formats.ts';
import type { Image } from '../types.ts';

export function notFound(imageId: string): ImageError {
  const message = `image ${imageId} does not exist here; it was deleted, or never built here`;
  return new ImageError('image-not-found', message);
}

/** Makes the error for an image without a file from which one of the formats can be made. */
export function unavailable(image: Image, formats: readonly ImageFormat[]): ImageError {
  const there = image.files.map(({ format }) => format).join(', ');
  return new ImageError(
    'format-unavailable',
    `image ${image.id} exists as ${there}, which cannot be converted to ${formats.join(' or ') || 'nothing'}; ` +
      'build it in a required format',
  );
}
