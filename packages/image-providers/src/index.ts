export { DirectoryProvider, type DirectoryProviderOptions } from './directory/directory-provider.ts';
export type { DirectoryManifest } from './directory/manifest.ts';
export type { CloudSettings } from './openstack/cloud-settings.ts';
export { loadCloudSettings } from './openstack/settings/load-cloud-settings.ts';
export type {
  NodepoolCredentials,
  SettingsPlace,
  SettingsRequest,
} from './openstack/settings/settings-request.ts';
export { IMAGE_PROVIDERS, type ProviderSettings } from './registry.ts';
