import type { ImageFormat } from '@nodepool-builder/image-builder';
import { isImageFormat, readImageTags } from '@nodepool-builder/image-builder/internal';
import { type CloudImage, cloudImage, IMAGE_TAGS } from '@nodepool-builder/image-builder/plugin';
import { createdAt, dataSize, type GlanceImage, reportedDigests, updatedAt } from './glance-image.ts';
import { checksumsIn, diskFormat } from './upload/image-properties.ts';

/** Statuses of an incomplete image. */
export const INCOMPLETE: readonly string[] = ['queued', 'saving', 'uploading', 'importing', 'killed'];

/**
 * Describes an image.
 *
 * @param projectId undefined in a cloud without Keystone, where images have no owner
 * @param formats of the provider
 */
export function describeImage(
  image: GlanceImage,
  projectId: string | undefined,
  formats: readonly ImageFormat[],
): CloudImage<GlanceImage> {
  const { id, status, tags, updated_at: updated } = image;
  const scalars = Object.entries(image).filter(([, value]) => typeof value !== 'object');
  const properties: Record<string, string> = Object.fromEntries(
    scalars.map(([name, value]) => [name, String(value)]),
  );
  const { name = '', owner, visibility } = properties;
  const { [IMAGE_TAGS.imageName]: imageName, [IMAGE_TAGS.imageId]: imageId } = properties;
  const isHidden = status === 'active' && image.os_hidden === true;
  const tagged = readImageTags(image);
  const format = formatOf(image.disk_format, formats);
  const checksums = checksumsIn(image);
  return cloudImage({
    native: image,
    externalId: id,
    name,
    status: isHidden ? 'hidden' : status,
    isComplete: status === 'active',
    isUsable: status === 'active' && !isHidden,
    version: `${status} ${updated}`,
    isOwn: owner === projectId,
    tagged: tagged && {
      ...tagged,
      size: dataSize(image) ?? 0,
      ...(format && { format }),
      ...(checksums && { checksums }),
    },
    // Other software may have set only one of these.
    ...(imageName !== undefined && { imageName }),
    ...(imageId !== undefined && { imageId }),
    ...(owner !== undefined && { owner }),
    ...(visibility !== undefined && { visibility }),
    tags: Array.isArray(tags) ? tags.map(String) : [],
    properties,
    createdAt: createdAt(image),
    changedAt: updatedAt(image),
    reported: reportedDigests(image),
  });
}

/**
 * Glance uses one name for several formats. The provider's own format takes precedence, even over a Glance format that
 * this provider does not have, because the cloud may have converted the image.
 */
function formatOf(name: unknown, formats: readonly ImageFormat[]): ImageFormat | undefined {
  const own = formats.find((format) => diskFormat(format) === name);
  return own ?? (isImageFormat(name) ? name : formats[0]);
}
