import type { ProviderModule } from '@nodepool-builder/image-builder';
import { scalarText } from '@nodepool-builder/image-builder/internal';
import { AzureProvider } from './azure-provider.ts';
import { type AzureAccount, endpointError } from './azure-session.ts';
import { AZURE_SETTINGS } from './azure-settings.ts';
import { CLOUD_IMAGE_KEYS } from './cloud-image-keys.ts';
import { createCredential, readServicePrincipal } from './credentials.ts';

/** Context that the host adds to an entry. */
interface Host {
  readonly subscription: string;
}

/** `type: azure`: managed images, or versions in a gallery. */
export const AZURE_MODULE: ProviderModule<typeof AZURE_SETTINGS, Host> = {
  type: 'azure',
  settings: AZURE_SETTINGS,
  *check(entry) {
    const error = entry.endpoint === undefined ? undefined : endpointError(entry.endpoint);
    if (error !== undefined) {
      yield { pointer: '/endpoint', reason: error, remedy: 'use an https URL' };
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
      scalarText(entry['subscription-id']) ?? principal?.subscriptionId ?? env.AZURE_SUBSCRIPTION_ID;
    if (subscription === undefined || subscription === '') {
      throw new Error('no subscription is configured; set subscription-id');
    }
    return { prepared: { subscription }, imageType: 'raw' };
  },
  images: {
    open(entry, services) {
      const { 'azure-cloud': cloud } = entry;
      const account = async (): Promise<AzureAccount> => {
        const { subscription } = await services.prepared();
        return {
          subscription,
          resourceGroup: entry['resource-group'],
          cloud,
          endpoint: entry.endpoint,
          credential: () =>
            createCredential({
              kind: entry['azure-credential'],
              authPath: entry['auth-path'],
              tenantId: scalarText(entry['azure-tenant-id']),
              clientId: scalarText(entry['azure-client-id']),
              cloud,
            }),
        };
      };
      return new AzureProvider({ entry, ...services, account });
    },
    cloudImages: CLOUD_IMAGE_KEYS,
  },
};
