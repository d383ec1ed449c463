import { splitTags } from '../image-filter/image-filter.ts';
import { readImageTags, type TaggedImage } from '../image-tags.ts';
import type { ImageCandidate, ProviderImage } from '../types.ts';

/** An image in a cloud, complete or not. `Native` is the cloud's own description. */
export interface CloudImage<Native = unknown> extends ImageCandidate {
  readonly native: Native;
  /** Content of our tags; undefined for an image that nodepool-builder did not upload. */
  readonly tagged: TaggedImage | undefined;
  /** True if the image has all its data. */
  readonly isComplete: boolean;
  /**
   * Value that changes with the image. An incomplete image that has changed since it was listed is not removed.
   * Default: the status.
   */
  readonly version: string;
  /** Time of the last change, if the cloud knows it. Default: the creation time. */
  readonly changedAt?: Date;
  /** Digests from the cloud, as {@link ProviderImage.reported}. */
  readonly reported?: ProviderImage['reported'];
}

/** Members of a {@link CloudImage} that are not derived from others. */
export type DescribedImage<Native> = Pick<
  CloudImage<Native>,
  'externalId' | 'isComplete' | 'properties' | 'createdAt'
> &
  (undefined extends Native ? unknown : Pick<CloudImage<Native>, 'native'>);

/** Describes an image. Missing members are derived from the tags in its properties, or from other members. */
export function cloudImage<Native>(
  image: DescribedImage<Native> & Partial<CloudImage<Native>>,
): CloudImage<Native> {
  const { properties, isComplete, isOwn = true } = image;
  const { status = isComplete ? 'complete' : 'incomplete' } = image;
  const { tagged = isOwn ? readImageTags(properties) : undefined } = image;
  return {
    native: undefined as Native,
    name: image.externalId,
    status,
    version: status,
    isUsable: isComplete,
    isOwn,
    ...(tagged && { imageName: tagged.imageName, imageId: tagged.imageId }),
    ...(tagged?.builtAt && { builtAt: tagged.builtAt }),
    ...(properties.architecture !== undefined && { architecture: properties.architecture }),
    tags: splitTags(properties.tags),
    ...image,
    tagged,
  };
}

/** Converts an image for filters. */
export function toCandidate({
  native: _native,
  tagged: _tagged,
  isComplete: _isComplete,
  version: _version,
  changedAt: _changedAt,
  reported: _reported,
  ...candidate
}: CloudImage): ImageCandidate {
  return candidate;
}

/** Converts a complete image of ours for the provider's list; undefined for any other image. */
export function toProviderImage(image: CloudImage): ProviderImage | undefined {
  const { tagged, externalId, createdAt: uploadedAt, reported } = image;
  if (tagged === undefined || !image.isComplete) return undefined;
  const { imageId, imageName, uploadId, format = 'raw', size = 0, checksums } = tagged;
  return {
    externalId,
    uploadId,
    imageId,
    imageName,
    format,
    size,
    ...(checksums && { checksums }),
    ...(reported && { reported }),
    uploadedAt,
  };
}
