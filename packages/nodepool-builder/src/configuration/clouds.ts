import {
  loadCloudSettings,
  type NodepoolCredentials,
  type SettingsPlace,
} from '@nodepool-builder/provider-openstack';
import type { ProviderCloud } from './configuration.ts';
import { toText } from './scalar.ts';
import type { ProviderSource } from './source.ts';

/**
 * The cloud that a provider names, by `cloud`, by credentials of its own, or by neither. What is wrong with it is
 * kept for whoever uploads: other providers can be used all the same.
 */
export async function findCloud(source: ProviderSource, place: SettingsPlace): Promise<ProviderCloud> {
  const text = (key: keyof ProviderSource): string | undefined => toText(source[key]) || undefined;
  const provider: NodepoolCredentials = {
    name: source.name,
    username: text('username'),
    password: text('password'),
    authUrl: text('auth-url'),
    projectId: text('project-id'),
    projectName: text('project-name'),
    apiTimeout: source['api-timeout'] ?? undefined,
  };
  const request = { provider, cloud: text('cloud'), regionName: text('region-name') };
  try {
    return { settings: await loadCloudSettings(request, place) };
  } catch (error) {
    return { error: error instanceof Error ? error : new Error(String(error)) };
  }
}
