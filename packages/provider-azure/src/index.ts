import { AZURE_MODULE } from './azure-module.ts';

export { AZURE_MODULE } from './azure-module.ts';
export { AzureProvider, type AzureProviderOptions } from './azure-provider.ts';
export type { AzureAccount, AzureCloudName } from './azure-session.ts';
export type { AzureEntry } from './azure-settings.ts';
export { type CredentialSettings, createCredential } from './credentials.ts';

export default AZURE_MODULE;
