import {
  type CloudImageEntry,
  type CloudImageKeys,
  combineFilters,
  type FilterEntry,
} from '@nodepool-builder/image-builder/module-kit';

const TEXT = { type: ['string', 'number', 'null'] } as const;

/**
 * Keys that select an image in nodepool's driver. Without `image-project`, the image belongs to the provider's project.
 */
export const CLOUD_IMAGE_KEYS: CloudImageKeys = {
  properties: {
    'image-family': { ...TEXT, description: 'Image family. The newest build of the family wins.' },
    'image-project': { ...TEXT, description: "Project of the image. Default: the provider's project." },
  },
  filters: (image) =>
    combineFilters(
      image['image-filters'] ?? [],
      entry('property:family', image['image-family']),
      entry('owner', image['image-project']),
    ),
};

function entry(name: string, value: CloudImageEntry[string]): readonly FilterEntry[] {
  return typeof value === 'string' || typeof value === 'number' ? [{ name, values: [String(value)] }] : [];
}
