import type { ObjectSchema, ProviderEntry } from '@nodepool-builder/image-builder';

const TEXT = { type: 'string', minLength: 1 } as const;

/** Keys of an entry of `providers` with `type: gce`. They follow nodepool's driver where it has the same key. */
export const GCE_SETTINGS = {
  type: 'object',
  description: 'images in Google Compute Engine',
  properties: {
    project: { ...TEXT, description: 'Project of the images. Default: the project in the credentials.' },
    'credentials-file': {
      ...TEXT,
      description:
        'Credentials file: a service account key, or a workload identity federation configuration. Default: ' +
        'the application default credentials.',
    },
    endpoint: { ...TEXT, description: "URL of Compute Engine. Default: Google's URL." },
    'storage-endpoint': { ...TEXT, description: "URL of Cloud Storage. Default: Google's URL." },
    'bucket-name': {
      ...TEXT,
      description:
        'Cloud Storage bucket for files in transit. A file is removed once the image is available.',
    },
    'image-import-timeout': {
      type: 'number',
      exclusiveMinimum: 0,
      default: 3600,
      description: 'Seconds from the last byte until the image is available.',
    },
    'image-family': {
      ...TEXT,
      description: 'Family of the images. `meta.family` of an image overrides it. Default: none.',
    },
    'guest-os-features': {
      type: 'array',
      items: TEXT,
      description: 'Guest OS features, such as `UEFI_COMPATIBLE`, `GVNIC`, `VIRTIO_SCSI_MULTIQUEUE`.',
    },
    'storage-locations': {
      type: 'array',
      items: TEXT,
      description: 'Regions in which images are stored. Default: the multi-region nearest to the bucket.',
    },
    tags: {
      type: 'object',
      additionalProperties: { type: 'string', format: 'text' },
      description: 'Labels of the images, in addition to our own labels.',
    },
  },
} as const satisfies ObjectSchema;

export type GceEntry = ProviderEntry<typeof GCE_SETTINGS>;
