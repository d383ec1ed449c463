import type { Mapping } from './mapping.ts';
import type { SettingsPlace } from './settings-request.ts';

/** Options of the program that reads the variables; alone they make no cloud. */
const SELECTORS = new Set([
  'OS_CLOUD',
  'OS_REGION_NAME',
  'OS_CLIENT_CONFIG_FILE',
  'OS_CLIENT_SECURE_FILE',
  'OS_CLOUD_NAME',
  'OS_FORCE_IPV4',
  'OS_PREFER_IPV6',
]);

/** Of other programs. */
const FOREIGN = ['OS_TEST', 'OS_STD', 'OS_LOG'];

/** What the cloud of the environment is called: `envvars`, if `OS_CLOUD_NAME` says nothing else. */
export function environmentCloudName(env: SettingsPlace['env']): string {
  return env.OS_CLOUD_NAME || 'envvars';
}

/** The cloud that `OS_*` describes: `OS_AUTH_URL` is its `auth_url`, and so on. Empty values count as unset. */
export function environmentCloud(env: SettingsPlace['env']): Mapping | undefined {
  const set = Object.entries(env).filter(
    ([name, value]) => value && name.startsWith('OS_') && !FOREIGN.some((prefix) => name.startsWith(prefix)),
  );
  if (set.every(([name]) => SELECTORS.has(name))) return undefined;
  return Object.fromEntries(set.map(([name, value]) => [name.slice('OS_'.length).toLowerCase(), value]));
}
