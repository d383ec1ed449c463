import { splitTags } from '../image-filter/image-filter.ts';
import { readImageTags, type TaggedImage } from '../image-tags.ts';
import type { ImageCandidate, ProviderImage } from '../types.ts';

/** An image in a cloud, complete or not. `Native` is the cloud's own description of it. */
export interface CloudImage<Native = unknown> extends ImageCandidate {
  readonly native: Native;
  /** Content of our tags; undefined for an image that this software did not upload. */
  readonly tagged: TaggedImage | undefined;
  /** Whether it has all its data. */
  readonly isComplete: boolean;
  /** Changes with the image: an incomplete one that has changed since it was listed is not removed. Default: the status. */
  readonly version: string;
  /** Digests that the cloud reports, as {@link ProviderImage.reported}. */
  readonly reported?: ProviderImage['reported'];
}

/** The members of a {@link CloudImage} that do not follow from others. */
type Described<Native> = Pick<
  CloudImage<Native>,
  'native' | 'externalId' | 'status' | 'isComplete' | 'properties' | 'createdAt'
>;

/** Describes an image. Members without a value follow from the tags among the properties, or from the others. */
export function cloudImage<Native>(
  image: Described<Native> & Partial<CloudImage<Native>>,
): CloudImage<Native> {
  const { properties, isOwn = true } = image;
  const { tagged = isOwn ? readImageTags(properties) : undefined } = image;
  return {
    name: image.externalId,
    version: image.status,
    isUsable: image.isComplete,
    isOwn,
    ...(tagged && { imageName: tagged.imageName, imageId: tagged.imageId }),
    ...(tagged?.builtAt && { builtAt: tagged.builtAt }),
    ...(properties.architecture !== undefined && { architecture: properties.architecture }),
    tags: splitTags(properties.tags),
    ...image,
    tagged,
  };
}

/** An image as filters see it. */
export function toCandidate({
  native: _native,
  tagged: _tagged,
  isComplete: _isComplete,
  version: _version,
  reported: _reported,
  ...candidate
}: CloudImage): ImageCandidate {
  return candidate;
}

/** A complete image of ours in the list of a provider; undefined for any other. */
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
