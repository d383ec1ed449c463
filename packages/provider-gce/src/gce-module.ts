import type {
  CloudImageEntry,
  CloudImageKeys,
  FilterEntry,
  ProviderModule,
} from '@nodepool-builder/image-builder';
import { combineFilters } from '@nodepool-builder/image-builder/plugin';
import { GceProvider } from './gce-provider.ts';
import { GCE_SETTINGS } from './gce-settings.ts';

const TEXT = { type: ['string', 'number', 'null'] } as const;

/** Keys with which nodepool's driver chooses an image. Without `image-project`, it is one of the own project. */
export const CLOUD_IMAGE_KEYS: CloudImageKeys = {
  properties: {
    'image-family': { ...TEXT, description: 'Family of the image. Its newest build wins.' },
    'image-project': { ...TEXT, description: "Project of the image. Default: the provider's project." },
  },
  filters: (image) =>
    combineFilters(
      image['image-filters'] ?? [],
      filterFor('property:family', image['image-family']),
      filterFor('owner', image['image-project']),
    ),
};

function filterFor(name: string, value: CloudImageEntry[string]): readonly FilterEntry[] {
  return typeof value === 'string' || typeof value === 'number' ? [{ name, values: [String(value)] }] : [];
}

/** `type: gce`: images in Compute Engine. */
export const GCE_MODULE: ProviderModule<typeof GCE_SETTINGS, undefined> = {
  type: 'gce',
  settings: GCE_SETTINGS,
  *check({ 'bucket-name': bucket, images }) {
    if (bucket !== undefined || images.length === 0) return;
    yield {
      pointer: '',
      reason: 'lacks the key "bucket-name", which uploads need',
      remedy: 'set it to a Cloud Storage bucket in the same project',
    };
  },
  prepare: async () => ({ prepared: undefined, imageType: 'raw' }),
  images: {
    open(entry, services) {
      return new GceProvider({
        entry,
        ...services,
        session: {
          project: entry.project,
          credentialsFile:
            entry['credentials-file'] ?? (process.env.GOOGLE_APPLICATION_CREDENTIALS || undefined),
          endpoint: entry.endpoint,
          storageEndpoint: entry['storage-endpoint'],
          onTask: services.onTask,
        },
      });
    },
    cloudImages: CLOUD_IMAGE_KEYS,
  },
};
