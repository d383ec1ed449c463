import { invalidSettings } from './invalid-settings.ts';
import type { KnownClouds } from './known-clouds.ts';
import type { Mapping } from './mapping.ts';
import { VENDOR_PROFILES } from './vendor-profiles.ts';

/**
 * What a cloud's `profile` (once called `cloud`) lays below its own settings.
 *
 * @param where the cloud and its files, for messages
 * @throws OpenStackError `invalid-settings` for the address of a profile, which openstacksdk would fetch
 */
export function vendorProfile(
  cloud: Mapping,
  known: KnownClouds,
  where: string,
  warn: (message: string) => void,
): Mapping {
  const name = cloud.profile ?? cloud.cloud;
  if (typeof name !== 'string') return {};
  const profile = known.profiles.get(name) ?? VENDOR_PROFILES.get(name);
  if (profile === undefined && name.includes('://')) {
    throw invalidSettings(
      `${where} has its profile at an address, which is not supported`,
      'name a vendor, or write auth_url and regions into clouds.yaml',
    );
  }
  if (profile === undefined) {
    warn(`${where}: there is no vendor profile "${name}"; the cloud goes without`);
    return {};
  }
  if (profile.status === 'deprecated')
    warn(`${where}: its profile is deprecated: ${String(profile.message)}`);
  return profile;
}
