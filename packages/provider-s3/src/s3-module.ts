import type { ProviderModule } from '@nodepool-builder/image-builder';
import { S3Provider } from './s3-provider.ts';
import { S3_SETTINGS } from './s3-settings.ts';

/** `type: s3`: images in an object store. */
export const S3_MODULE: ProviderModule<typeof S3_SETTINGS, undefined> = {
  type: 's3',
  settings: S3_SETTINGS,
  images: {
    open: (entry, services) => new S3Provider({ entry, ...services }),
  },
};
