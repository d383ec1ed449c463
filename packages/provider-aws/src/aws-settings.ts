import type { ObjectSchema, ProviderEntry } from '@nodepool-builder/image-builder';

const TEXT = { type: 'string', minLength: 1 } as const;

/** Keys of an entry of `providers` with `type: aws`: those of nodepool's driver where it has one. */
export const AWS_SETTINGS = {
  type: 'object',
  description: 'AMIs and instances in Amazon EC2',
  properties: {
    'region-name': {
      type: ['string', 'number', 'null'],
      description: "Region. Default: the profile's region, or `AWS_REGION`.",
    },
    'profile-name': {
      ...TEXT,
      description: 'Profile in the files of the AWS command line. Default: `AWS_PROFILE`, else `default`.',
    },
    'shared-credentials-file': {
      ...TEXT,
      description: 'File with the credentials of the profile. Default: the usual chain of the AWS SDK.',
    },
    endpoint: { ...TEXT, description: "URL of EC2 and EBS. Default: the region's URLs." },
    's3-endpoint': { ...TEXT, description: "URL of S3. Default: the region's URL." },
    'import-method': {
      enum: ['ebs-direct', 'snapshot', 'image'],
      default: 'ebs-direct',
      description:
        '`ebs-direct` writes the blocks of a raw image into a snapshot: it sends no zeros, and of the next build only what ' +
        'changed. `snapshot` and `image` have AWS import a file from `bucket-name`, with its role `vmimport`; `image` is ' +
        'for systems with licences.',
    },
    'incremental-snapshots': {
      type: 'boolean',
      default: true,
      description:
        'Whether `ebs-direct` begins with the snapshot of the last build of an image and sends only blocks that changed.',
    },
    'bucket-name': { ...TEXT, description: 'Bucket of S3 for `import-method: snapshot` and `image`.' },
    'import-role-name': {
      ...TEXT,
      description: 'Role with which AWS reads the bucket. Default: `vmimport`.',
    },
    'image-import-timeout': {
      type: 'number',
      exclusiveMinimum: 0,
      default: 3600,
      description: 'Seconds from the last byte until the image is available.',
    },
    architecture: {
      enum: ['arm64', 'i386', 'x86_64', 'x86_64_mac', 'arm64_mac'],
      default: 'x86_64',
      description: 'Architecture of the images. `meta.architecture` of an image overrides it.',
    },
    'boot-mode': {
      enum: ['legacy-bios', 'uefi', 'uefi-preferred'],
      description: "How instances boot. Default: the instance type's mode.",
    },
    'ena-support': {
      type: 'boolean',
      default: true,
      description: 'Whether the images have a driver for enhanced networking.',
    },
    'imds-support': {
      enum: ['v2.0', null],
      description:
        '`v2.0`: instances get their metadata with version 2 of the service alone. Not with `import-method: image`.',
    },
    'volume-type': {
      enum: ['gp2', 'gp3', 'io1', 'io2', 'st1', 'sc1', 'standard'],
      default: 'gp3',
      description: 'Type of the root volume of images, and of instances of `on-instance`.',
    },
    'volume-size': {
      type: 'integer',
      minimum: 1,
      description: 'GiB of the root volume. Default: the size of the image.',
    },
    iops: { type: 'integer', minimum: 100, description: 'Operations a second of the root volume.' },
    throughput: { type: 'integer', minimum: 125, description: 'MiB a second of the root volume.' },
    tags: {
      type: 'object',
      additionalProperties: { type: 'string', format: 'text' },
      description: 'Tags of the images and their snapshots besides our own.',
    },
    'copy-regions': {
      type: 'array',
      items: TEXT,
      description: 'Further regions that get a copy of each image. They are deleted with it.',
    },
    'share-accounts': {
      type: 'array',
      items: { type: ['string', 'integer'] },
      description: 'Accounts that may launch the images.',
    },
    'instance-type': {
      ...TEXT,
      description:
        'For `on-instance`: type of the instances, `t3.large`. `min-ram` and `name-filter` of a disk image choose the ' +
        'smallest type that fits instead. Default: the smallest with 2 GiB.',
    },
    'subnet-id': { ...TEXT, description: 'Subnet of the instances. Default: one of the default network.' },
    'security-group-id': {
      type: ['string', 'array'],
      items: TEXT,
      description:
        "Security group of the instances, or a list. It lets this host in. Default: the network's group.",
    },
    'public-ipv4': {
      type: 'boolean',
      description: 'Whether instances get a public IPv4 address. Default: as the subnet says.',
    },
    'public-ipv6': {
      type: 'boolean',
      default: false,
      description: 'Whether instances get an IPv6 address.',
    },
    'use-internal-ip': {
      type: 'boolean',
      default: false,
      description: 'Whether to reach instances by their private address.',
    },
    'iam-instance-profile': {
      ...TEXT,
      description: 'Name or ARN of the profile of the instances. Default: none.',
    },
    imdsv2: {
      enum: ['required', 'optional'],
      description:
        'Whether instances need version 2 of the metadata service. Default: as the AMI or the account says.',
    },
    'upload-concurrency': {
      type: 'integer',
      minimum: 1,
      maximum: 128,
      default: 32,
      description: 'Blocks or parts that travel at a time, of one upload.',
    },
  },
} as const satisfies ObjectSchema;

export type AwsEntry = ProviderEntry<typeof AWS_SETTINGS>;
