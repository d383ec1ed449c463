import type { ObjectSchema, ProviderEntry } from '@nodepool-builder/image-builder';

const TEXT = { type: 'string', minLength: 1 } as const;

/** Keys of an entry of `providers` with `type: s3`. */
export const S3_SETTINGS = {
  type: 'object',
  description: 'images in an S3-compatible object store: AWS, Ceph, MinIO, Swift',
  required: ['bucket-name'],
  properties: {
    'bucket-name': {
      ...TEXT,
      description: 'Bucket for the images. It must exist.',
    },
    prefix: {
      ...TEXT,
      description:
        'Prefix of all object keys, such as `images/`. A slash is added if it is missing. Default: none.',
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
      description:
        'File with the credentials of the profile. Default: the default credential chain of the AWS SDK.',
    },
    'path-style': {
      type: 'boolean',
      description:
        "Whether the bucket is part of the URL's path instead of the host name. Default: true with an `endpoint`.",
    },
    'upload-concurrency': {
      type: 'integer',
      minimum: 1,
      maximum: 128,
      default: 4,
      description: 'Max concurrent parts of an upload, each with at least 16 MiB.',
    },
  },
} as const satisfies ObjectSchema;

export type S3Entry = ProviderEntry<typeof S3_SETTINGS>;
