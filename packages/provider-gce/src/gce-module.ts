import type { ProviderModule } from '@nodepool-builder/image-builder';
import { CLOUD_IMAGE_KEYS } from './cloud-image-keys.ts';
import { GceProvider } from './gce-provider.ts';
import { GCE_SETTINGS } from './gce-settings.ts';

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
