import {
  type CloudImageEntry,
  type CloudImageKeys,
  combineFilters,
  type FilterEntry,
} from '@nodepool-builder/image-builder/module-kit';

const TEXT = { type: ['string', 'number', 'null'] } as const;

/** Keys with which nodepool's driver chooses an image. Without `image-project`, it is one of the own project. */
export const CLOUD_IMAGE_KEYS: CloudImageKeys = {
  properties: {
    'image-family': { ...TEXT, description: 'Family of the image. The newest build of it wins.' },
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
