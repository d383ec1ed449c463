import type { ObjectSchema, ProviderEntry } from '@nodepool-builder/image-builder';
import { CREDENTIAL_KINDS } from './credentials.ts';

/** JSON schema type of a text that YAML may parse as a number. */
const SCALAR = ['string', 'number', 'null'] as const;

/** Keys of an entry of `providers` with `type: azure`. */
export const AZURE_SETTINGS = {
  type: 'object',
  description: 'managed images or a gallery in Microsoft Azure',
  required: ['resource-group', 'location'],
  properties: {
    'resource-group': {
      type: 'string',
      minLength: 1,
      description: 'Name of the resource group for disks and images. It must exist.',
      $comment: 'set it to the resource group',
    },
    location: {
      type: 'string',
      minLength: 1,
      description: 'Region of disks and images, such as `westeurope`.',
      $comment: 'set it to the region, such as westeurope',
    },
    'subscription-id': {
      type: SCALAR,
      description: 'Subscription id. Default: the id in the file `auth-path`, or `AZURE_SUBSCRIPTION_ID`.',
    },
    'auth-path': {
      type: 'string',
      minLength: 1,
      format: 'path',
      description:
        'File with a service principal, as printed by `az ad sp create-for-rbac`: `clientId`, `tenantId`, and ' +
        '`clientSecret` or the path `clientCertificate`. Default: `azure-credential`.',
    },
    'azure-credential': {
      enum: CREDENTIAL_KINDS,
      default: 'default',
      description:
        'Source of the token. `default` tries environment variables, workload identity, managed identity and ' +
        'developer tools, in this order.',
    },
    'azure-client-id': {
      type: SCALAR,
      description: 'Client id of a user-assigned managed identity, or of a workload identity.',
    },
    'azure-tenant-id': { type: SCALAR, description: 'Tenant id, for credentials that need one.' },
    'azure-cloud': {
      enum: ['public', 'china', 'us-government'],
      default: 'public',
      description: 'National cloud.',
    },
    endpoint: {
      type: 'string',
      minLength: 1,
      description: "URL of the API, for a private cloud or a test. Default: the cloud's URL.",
    },
    'gallery-name': {
      type: 'string',
      minLength: 1,
      description:
        'Gallery in the resource group for the images: each name has a definition, and each upload is a version. ' +
        'Default: managed images.',
    },
    'target-regions': {
      type: 'array',
      items: { type: 'string' },
      description: 'With `gallery-name`: further regions that get a copy of each image.',
    },
    'gallery-replicas': {
      type: 'integer',
      minimum: 1,
      default: 1,
      description:
        'With `gallery-name`: copies per region. About 20 machines can start from one copy at a time.',
    },
    'azure-disk-type': {
      enum: ['Standard_LRS', 'StandardSSD_LRS', 'StandardSSD_ZRS', 'Premium_LRS', 'Premium_ZRS'],
      default: 'Standard_LRS',
      description: 'Storage type of the upload disk and of a managed image.',
    },
    'hyper-v-generation': {
      enum: ['V1', 'V2'],
      default: 'V2',
      description: 'Firmware that boots the image: `V1` is BIOS, `V2` is UEFI.',
    },
    'zone-resilient': {
      type: 'boolean',
      default: false,
      description: 'Whether an image is stored in all zones of the region.',
    },
    tags: {
      type: 'object',
      additionalProperties: { type: 'string', format: 'text' },
      description: 'Tags of disks and images.',
    },
    'image-import-timeout': {
      type: 'number',
      exclusiveMinimum: 0,
      default: 3600,
      description: 'Time limit in seconds for creating an image and its copies in other regions.',
    },
  },
} as const satisfies ObjectSchema;

export type AzureEntry = ProviderEntry<typeof AZURE_SETTINGS>;
