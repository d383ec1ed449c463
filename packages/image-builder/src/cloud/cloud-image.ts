import { splitTags } from '../image-filter/image-filter.ts';
import { readImageTags, type TaggedImage } from '../image-tags.ts';
import type { ImageCandidate, ProviderImage } from '../types.ts';

/** An image in a cloud, complete or not. `Native` is the cloud's own description of it. */
export interface CloudImage<Native = unknown> extends ImageCandidate {
  readonly native: Native;
  /** Content of our tags; undefined for an image that this software did not upload. */
  readonly tagged: TaggedImage | undefined;
  /** Whether the image has all its data. */
  readonly isComplete: boolean;
  /**
   * Version of the image. An incomplete image whose version has changed since it was listed is not removed. Default:
   * the status.
   */
  readonly version: string;
  /** Time of its last change, where the cloud knows it. Default: {@link createdAt}. */
  readonly changedAt?: Date;
  /** Digests that the cloud reports, as {@link ProviderImage.reported}. */
  readonly reported?: ProviderImage['reported'];
}

/** The members of a {@link CloudImage} that do not follow from others. */
type Described<Native> = Pick<CloudImage<Native>, 'externalId' | 'isComplete' | 'properties' | 'createdAt'> &
  (undefined extends Native ? unknown : Pick<CloudImage<Native>, 'native'>);

/** Describes an image. Missing members are derived from the tags among the properties, or from other members. */
export function cloudImage<Native>(
  image: Described<Native> & Partial<CloudImage<Native>>,
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

/** Returns the list entry of a complete image that this software uploaded; undefined for any other image. */
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
