import type { ObjectSchema, ProviderModule } from '@nodepool-builder/image-builder';
import { AzureProvider } from './azure-provider.ts';
import { type AzureAccount, endpointFault } from './azure-session.ts';
import { CLOUD_IMAGE_KEYS } from './cloud-image-keys.ts';
import { CREDENTIAL_KINDS, createCredential, readServicePrincipal } from './credentials.ts';

/** Type of text that YAML may read as a number. */
const SCALAR = ['string', 'number', 'null'] as const;

const SETTINGS = {
  type: 'object',
  description: 'managed images or a gallery in Microsoft Azure',
  required: ['resource-group', 'location'],
  properties: {
    'resource-group': {
      type: 'string',
      minLength: 1,
      description: 'Name of the resource group for disks and images. It must exist.',
      $comment: 'name the resource group',
    },
    location: {
      type: 'string',
      minLength: 1,
      description: 'Region of disks and images: `westeurope`.',
      $comment: 'name the region, such as westeurope',
    },
    'subscription-id': {
      type: SCALAR,
      description:
        'Id of the subscription. Default: the id in the file `auth-path`, or `AZURE_SUBSCRIPTION_ID`.',
    },
    'auth-path': {
      type: 'string',
      minLength: 1,
      format: 'path',
      description:
        'File with a service principal, as `az ad sp create-for-rbac` prints it: `clientId`, `tenantId`, and ' +
        '`clientSecret` or the path `clientCertificate`. Default: `azure-credential`.',
    },
    'azure-credential': {
      enum: CREDENTIAL_KINDS,
      default: 'default',
      description:
        'Source of the token. `default` tries environment variables, workload identity, managed identity, and the ' +
        'tools of a developer, in this order.',
    },
    'azure-client-id': {
      type: SCALAR,
      description: 'Client id of a user-assigned managed identity, or of a workload identity.',
    },
    'azure-tenant-id': { type: SCALAR, description: 'Id of the tenant, where a credential needs one.' },
    'azure-cloud': {
      enum: ['public', 'china', 'us-government'],
      default: 'public',
      description: 'One of the national clouds.',
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
        'Gallery of the resource group for the images: each name has a definition, and each upload is a version. ' +
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
        'With `gallery-name`: copies in each region. About 20 machines can start from one at a time.',
    },
    'azure-disk-type': {
      enum: ['Standard_LRS', 'StandardSSD_LRS', 'StandardSSD_ZRS', 'Premium_LRS', 'Premium_ZRS'],
      default: 'Standard_LRS',
      description: 'Storage of the disk that takes an upload, and of a managed image.',
    },
    'hyper-v-generation': {
      enum: ['V1', 'V2'],
      default: 'V2',
      description: 'Firmware that the image boots with: `V1` is BIOS, `V2` is UEFI.',
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
      description:
        'Seconds until the creation of an image, with its copies in other regions, is given up. Default: 3600.',
    },
  },
} as const satisfies ObjectSchema;

/** What the host adds to an entry. */
interface Host {
  readonly subscription: string;
}

/** `type: azure`: managed images, or versions in a gallery. */
export const AZURE_MODULE: ProviderModule<typeof SETTINGS, Host> = {
  type: 'azure',
  settings: SETTINGS,
  *check(entry) {
    const fault = entry.endpoint === undefined ? undefined : endpointFault(entry.endpoint);
    if (fault !== undefined) {
      yield { pointer: '/endpoint', reason: fault, remedy: 'write a URL with https' };
    }
    if (entry['gallery-name'] === undefined && entry['target-regions'] !== undefined) {
      yield {
        pointer: '/target-regions',
        reason: 'has no effect without gallery-name',
        remedy: 'add gallery-name, because a managed image has one region',
      };
    }
  },
  async prepare(entry, { env }) {
    const path = entry['auth-path'];
    const principal = path === undefined ? undefined : await readServicePrincipal(path);
    const subscription =
      textOf(entry['subscription-id']) ?? principal?.subscriptionId ?? env.AZURE_SUBSCRIPTION_ID;
    if (subscription === undefined || subscription === '') {
      throw new Error('there is no subscription: set subscription-id');
    }
    return { prepared: { subscription }, imageType: 'raw' };
  },
  images: {
    open(entry, { prepared, formats, logger, directory, onTask }) {
      const { location, 'azure-cloud': cloud, 'gallery-name': gallery } = entry;
      const account = async (): Promise<AzureAccount> => {
        const { subscription } = await prepared();
        return {
          subscription,
          resourceGroup: entry['resource-group'],
          cloud,
          endpoint: entry.endpoint,
          credential: () =>
            createCredential({
              kind: entry['azure-credential'],
              authPath: entry['auth-path'],
              tenantId: textOf(entry['azure-tenant-id']),
              clientId: textOf(entry['azure-client-id']),
              cloud,
            }),
        };
      };
      return new AzureProvider({
        name: entry.name,
        formats,
        account,
        location,
        logger,
        gallery:
          gallery === undefined
            ? undefined
            : {
                name: gallery,
                targetRegions: entry['target-regions'] ?? [],
                replicas: entry['gallery-replicas'],
              },
        diskType: entry['azure-disk-type'],
        hyperVGeneration: entry['hyper-v-generation'],
        zoneResilient: entry['zone-resilient'],
        tags: entry.tags,
        importTimeout: entry['image-import-timeout'],
        bandwidthLimit: entry['bandwidth-limit'],
        directory,
        onTask,
      });
    },
    cloudImages: CLOUD_IMAGE_KEYS,
  },
};

/** A scalar as text; undefined if it is empty. */
function textOf(value: unknown): string | undefined {
  if (typeof value === 'number') return String(value);
  return typeof value === 'string' && value !== '' ? value : undefined;
}
