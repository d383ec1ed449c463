import { invalidSettings } from './invalid-settings.ts';
import type { KnownClouds } from './known-clouds.ts';
import type { Mapping } from './mapping.ts';
import type { SettingsPlace } from './settings-request.ts';
import { VENDOR_PROFILES } from './vendor-profiles.ts';

/**
 * What a cloud's `profile` (once called `cloud`) lays below its own settings.
 *
 * @throws OpenStackError `invalid-settings` for the address of a profile, which openstacksdk would fetch
 */
export function vendorProfile(
  cloudName: string,
  cloud: Mapping,
  known: KnownClouds,
  place: SettingsPlace,
): Mapping {
  const name = cloud.profile ?? cloud.cloud;
  if (typeof name !== 'string' || name === known.environmentName) return {};
  const profile =
    known.profiles.get(name) ?? (Object.hasOwn(VENDOR_PROFILES, name) ? VENDOR_PROFILES[name] : undefined);
  if (profile === undefined && name.includes('://')) {
    throw invalidSettings(
      `cloud "${cloudName}" has its profile at an address, which is not supported`,
      'name a vendor, or write auth_url and regions into clouds.yaml',
    );
  }
  if (profile === undefined) {
    place.warn(`cloud "${cloudName}": there is no vendor profile "${name}"; it goes without`);
    return {};
  }
  if (profile.status === 'deprecated') {
    place.warn(`cloud "${cloudName}": the profile "${name}" is deprecated: ${String(profile.message)}`);
  }
  return profile;
}
