import type { ObjectSchema, ProviderEntry } from '@nodepool-builder/image-builder';

const TEXT = { type: 'string', minLength: 1 } as const;

/** Keys of an entry of `providers` with `type: aws`. They follow nodepool's driver where it has the same key. */
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
      description: "Profile in the AWS command line's files. Default: `AWS_PROFILE`, else `default`.",
    },
    'shared-credentials-file': {
      ...TEXT,
      description: "File with the profile's credentials. Default: the AWS SDK's default credential chain.",
    },
    endpoint: { ...TEXT, description: "URL of EC2 and EBS. Default: the region's URLs." },
    's3-endpoint': { ...TEXT, description: "URL of S3. Default: the region's URL." },
    'import-method': {
      enum: ['ebs-direct', 'snapshot', 'image'],
      default: 'ebs-direct',
      description:
        '`ebs-direct` writes the blocks of a raw image into a snapshot. It skips zeros, and blocks that the previous build ' +
        'already contained. `snapshot` and `image` let AWS import a file from `bucket-name`, with its role `vmimport`; `image` is ' +
        'for operating systems with a license.',
    },
    'bucket-name': { ...TEXT, description: 'S3 bucket for `import-method: snapshot` and `image`.' },
    'import-role-name': {
      ...TEXT,
      description: 'Role that lets AWS read the bucket. Default: `vmimport`.',
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
      description: 'Boot mode of instances. Default: the mode of the instance type.',
    },
    'ena-support': {
      type: 'boolean',
      default: true,
      description: 'Whether the images contain a driver for enhanced networking.',
    },
    'imds-support': {
      enum: ['v2.0', null],
      description:
        '`v2.0` restricts instances to version 2 of the metadata service. Not with `import-method: image`.',
    },
    'volume-type': {
      enum: ['gp2', 'gp3', 'io1', 'io2', 'st1', 'sc1', 'standard'],
      default: 'gp3',
      description: 'Root volume type of images and of `on-instance` instances.',
    },
    'volume-size': {
      type: 'integer',
      minimum: 1,
      description: 'Size of the root volume in GiB. Default: the size of the image.',
    },
    iops: { type: 'integer', minimum: 100, description: 'IOPS of the root volume.' },
    throughput: {
      type: 'integer',
      minimum: 125,
      description: 'Throughput of the root volume in MiB per second.',
    },
    tags: {
      type: 'object',
      additionalProperties: { type: 'string', format: 'text' },
      description: 'Tags of the images and their snapshots, in addition to our own tags.',
    },
    'copy-regions': {
      type: 'array',
      items: TEXT,
      description:
        'Further regions that get a copy of each image. The copies are deleted together with the image.',
    },
    'share-accounts': {
      type: 'array',
      items: { type: ['string', 'integer'] },
      description: 'Accounts that may launch the images.',
    },
    'instance-type': {
      ...TEXT,
      description:
        'For `on-instance`: instance type, such as `t3.large`. Alternatively, `min-ram` and `name-filter` of a disk image choose the ' +
        'smallest matching type. Default: the smallest type with 2 GiB.',
    },
    'subnet-id': { ...TEXT, description: 'Subnet of the instances. Default: a subnet of the default VPC.' },
    'security-group-id': {
      type: ['string', 'array'],
      items: TEXT,
      description:
        "Security group of the instances, or a list. It must allow connections from this host. Default: the VPC's default group.",
    },
    'public-ipv4': {
      type: 'boolean',
      description: "Whether instances get a public IPv4 address. Default: the subnet's setting.",
    },
    'public-ipv6': {
      type: 'boolean',
      default: false,
      description: 'Whether instances get an IPv6 address.',
    },
    'use-internal-ip': {
      type: 'boolean',
      default: false,
      description: 'Whether to connect to instances by their private address.',
    },
    'iam-instance-profile': {
      ...TEXT,
      description: 'Name or ARN of the instance profile. Default: none.',
    },
    imdsv2: {
      enum: ['required', 'optional'],
      description:
        'Whether instances require version 2 of the metadata service. Default: the setting of the AMI or the account.',
    },
    'upload-concurrency': {
      type: 'integer',
      minimum: 1,
      maximum: 128,
      default: 32,
      description: 'Max concurrent blocks or parts of one upload.',
    },
  },
} as const satisfies ObjectSchema;

export type AwsEntry = ProviderEntry<typeof AWS_SETTINGS>;
