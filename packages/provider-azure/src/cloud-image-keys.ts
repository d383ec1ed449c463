import {
  type CloudImageEntry,
  type CloudImageKeys,
  type FilterEntry,
  ImageError,
} from '@nodepool-builder/image-builder';
import { combineFilters } from '@nodepool-builder/image-builder/plugin';

const TEXT = { type: ['string', 'number', 'null'] } as const;

/** nodepool keys for images of other publishers, which cannot be searched. */
const FOREIGN: readonly string[] = ['community-gallery-image', 'image-reference'];

/** Keys that select an image in nodepool's driver. */
export const CLOUD_IMAGE_KEYS: CloudImageKeys = {
  properties: {
    'image-filter': {
      type: ['object', 'null'],
      additionalProperties: false,
      properties: {
        name: { ...TEXT, description: 'Name of the image.' },
        location: { ...TEXT, description: 'Region of the image.' },
        tags: { type: ['object', 'null'], description: 'Tags of the image.' },
      },
      description: "nodepool's filter for images in the resource group. The newest matching build wins.",
    },
    'shared-gallery-image': {
      type: ['object', 'null'],
      additionalProperties: false,
      properties: {
        'gallery-name': { ...TEXT, description: 'Name of the gallery.' },
        name: { ...TEXT, description: 'Name of the image definition.' },
        version: { ...TEXT, description: 'Version. Default: the version of the newest build.' },
      },
      description: 'Image definition in a gallery. Requires `gallery-name` of the provider.',
    },
    'community-gallery-image': {
      type: ['object', 'null'],
      description: 'A community gallery image, for launchers only.',
    },
    'image-reference': {
      type: ['object', 'null'],
      description: 'A marketplace image, for launchers only.',
    },
  },
  filters(image) {
    const foreign = FOREIGN.find((key) => image[key] != null);
    if (foreign !== undefined) {
      const reason = `${foreign} refers to another publisher's image, which filters cannot find; set its image-id`;
      throw new ImageError('invalid-filter', reason);
    }
    const { location, name, tags } = membersOf(image, 'image-filter');
    const gallery = membersOf(image, 'shared-gallery-image');
    return combineFilters(
      image['image-filters'] ?? [],
      entry('name', name === undefined ? undefined : literal(name)),
      entry('property:location', textOf(location)?.toLowerCase().replaceAll(' ', '')),
      ...Object.entries(isObject(tags) ? tags : {}).map(([tag, value]) => entry(`property:${tag}`, value)),
      entry('property:gallery', gallery['gallery-name']),
      entry('property:definition', gallery.name),
      entry('property:version', gallery.version),
    );
  },
};

type Members = Readonly<Record<string, unknown>>;

function membersOf(image: CloudImageEntry, key: string): Members {
  const value = image[key];
  return isObject(value) ? value : {};
}

function isObject(value: unknown): value is Members {
  return typeof value === 'object' && value !== null;
}

function entry(name: string, value: unknown): readonly FilterEntry[] {
  const text = textOf(value);
  return text === undefined ? [] : [{ name, values: [text] }];
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
    ? String(value)
    : undefined;
}

/**
 * Checks that a name contains no wildcard. nodepool compares names literally, and Azure does not allow wildcards in
 * them.
 */
function literal(name: unknown): string | undefined {
  const text = textOf(name);
  if (text === undefined || !/[*?]/.test(text)) return text;
  const reason = `image-filter.name is "${text}", but nodepool does not support wildcards; use image-filters`;
  throw new ImageError('invalid-filter', reason);
}
