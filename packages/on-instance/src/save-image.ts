import { join } from 'node:path';
import { type CapturedImage, ImageError } from '@nodepool-builder/image-builder';
import {
  conversionSource,
  convertImage,
  type FullBuildContext,
  isConvertible,
} from '@nodepool-builder/image-builder/internal';

/**
 * Writes a captured image in each requested format, by the provider or else by conversion.
 *
 * @throws ImageError `format-unavailable`, `image-too-large`, `disk-full`, `conversion-failed`
 */
export async function saveImage(
  captured: CapturedImage,
  { formats, outputPath, directory, imageId, maxDiskSize, signal }: FullBuildContext,
): Promise<void> {
  const options = { signal, maxDiskSize };
  const direct = formats.filter((format) => captured.formats.includes(format));
  for (const format of direct) await captured.save(format, outputPath(format), options);
  const others = formats.filter((format) => !direct.includes(format));
  if (others.length === 0) return;
  const saved = direct.map((format) => ({ format, path: outputPath(format) }));
  let source = conversionSource(saved);
  const convertible = captured.formats.find(isConvertible);
  if (source === undefined && convertible !== undefined) {
    source = { format: convertible, path: join(directory, 'captured') };
    await captured.save(convertible, source.path, options);
  }
  if (source === undefined) {
    throw new ImageError(
      'format-unavailable',
      `image ${imageId} was captured as ${captured.formats.join(', ')}, which cannot be converted to ${others.join(', ')}`,
    );
  }
  for (const format of others) await convertImage(source, format, outputPath(format), options);
}
