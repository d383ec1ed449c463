import type { ObjectSchema, ProviderEntry } from '@nodepool-builder/image-builder';

const TEXT = { type: 'string', minLength: 1 } as const;

/** Keys of an entry of `providers` with `type: s3`. */
export const S3_SETTINGS = {
  type: 'object',
  description: 'images in an object store with the interface of S3: AWS, Ceph, MinIO, Swift',
  properties: {
    'bucket-name': { ...TEXT, description: 'Bucket for the images. It must exist.' },
    prefix: {
      ...TEXT,
      description:
        'Begin of the keys of all objects, such as `images/`. A slash is added if it is missing. Default: none.',
    },
    endpoint: {
      ...TEXT,
      description: "URL of the object store, for Ceph, MinIO and others. Default: the region's URL in AWS.",
    },
    'region-name': {
      type: ['string', 'number', 'null'],
      description: "Region. Default: the profile's region, `AWS_REGION`, or `us-east-1`.",
    },
    'profile-name': {
      ...TEXT,
      description: 'Profile in the files of the AWS command line. Default: `AWS_PROFILE`, else `default`.',
    },
    'shared-credentials-file': {
      ...TEXT,
      description: 'File with the credentials of the profile. Default: the usual chain of the AWS SDK.',
    },
    'path-style': {
      type: 'boolean',
      description:
        'Whether the bucket is a part of the path and not of the host name. Default: yes with an `endpoint`.',
    },
    'upload-concurrency': {
      type: 'integer',
      minimum: 1,
      maximum: 128,
      default: 4,
      description: 'Parts of an upload that travel at a time, with 16 MiB or more each.',
    },
  },
} as const satisfies ObjectSchema;

export type S3Entry = ProviderEntry<typeof S3_SETTINGS>;
