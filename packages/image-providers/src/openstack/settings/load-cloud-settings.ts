import { type ImageFormat, isImageFormat } from '@nodepool-builder/image-builder';
import type { CloudSettings } from '../cloud-settings.ts';
import { cloudAuth } from './cloud-auth.ts';
import { credentialsOf } from './credentials.ts';
import { invalidSettings } from './invalid-settings.ts';
import { type KnownClouds, knownClouds } from './known-clouds.ts';
import { type Mapping, overlaid } from './mapping.ts';
import { MergedCloud } from './merged-cloud.ts';
import { vendorProfile } from './profile.ts';
import { chosenRegion } from './region.ts';
import { serviceSettings } from './services.ts';
import type { SettingsPlace, SettingsRequest } from './settings-request.ts';
import { tlsSettings } from './tls-settings.ts';

const DEFAULT_API_TIMEOUT = 60;

/**
 * Finds, merges and resolves the settings of a provider's cloud as openstacksdk does: vendor profile, then the cloud of
 * `clouds.yaml` with `secure.yaml` over it or the one that `OS_*` make, then its region, then the provider itself.
 *
 * @throws OpenStackError `invalid-settings` for a cloud or a region that is not there, and for what is missing or wrong
 */
export async function loadCloudSettings(
  request: SettingsRequest,
  place: SettingsPlace,
): Promise<CloudSettings> {
  const known = await knownClouds(place);
  const { provider } = request;
  const cloudName = request.cloud ?? known.defaultName;
  const own = cloudName === undefined ? {} : knownCloud(cloudName, known, provider.name);
  const name = cloudName ?? provider.name;
  const profile = vendorProfile(name, own, known, place);
  const source = { cloudName: name, origin: known.origin, cloud: own, profile };
  const region = chosenRegion(request.regionName, source);
  const merged = {
    ...overlaid(overlaid(profile, own), region?.values ?? {}),
    region_name: region?.name,
  };
  const where = `provider "${provider.name}", from ${known.origin}`;
  const cloud = new MergedCloud(name, merged, where, place.warn);
  return resolved(cloud, credentialsOf(merged, provider), provider.apiTimeout, place);
}

function knownCloud(name: string, { clouds, origin }: KnownClouds, provider: string): Mapping {
  const cloud = clouds.get(name);
  if (cloud !== undefined) return cloud;
  const others = clouds.size === 0 ? 'none' : [...clouds.keys()].join(', ');
  throw invalidSettings(
    `provider "${provider}": there is no cloud "${name}" in ${origin}; the clouds there: ${others}`,
    'correct "cloud" of the provider or OS_CLOUD, or add the cloud to clouds.yaml',
  );
}

function resolved(
  cloud: MergedCloud,
  credentials: Mapping,
  apiTimeout: number | undefined,
  place: SettingsPlace,
): CloudSettings {
  return {
    name: cloud.name,
    auth: cloudAuth(cloud, credentials),
    image: serviceSettings('image', cloud),
    objectStore: serviceSettings('object-store', cloud),
    tls: tlsSettings(cloud, place),
    apiTimeout: apiTimeout ?? timeoutOf(cloud) ?? DEFAULT_API_TIMEOUT,
    imageFormat: imageFormat(cloud),
    imageApiUseTasks: cloud.flag('image_api_use_tasks') ?? false,
    disableVendorAgent: properties(cloud),
  };
}

/** `api_timeout`, or a `…_timeout` of old that was one service's: there is one for all. */
function timeoutOf(cloud: MergedCloud): number | undefined {
  const key =
    cloud.keys().findLast((name) => /_timeout$/.test(name) && name !== 'api_timeout') ?? 'api_timeout';
  const text = cloud.text(key);
  if (text === undefined) return undefined;
  const seconds = Number(text);
  if (seconds > 0 && Number.isFinite(seconds)) return seconds;
  throw cloud.fault(`${key} is no number of seconds`, 'write a number above 0');
}

function imageFormat(cloud: MergedCloud): ImageFormat {
  const format = cloud.text('image_format') ?? 'qcow2';
  if (isImageFormat(format)) return format;
  throw cloud.fault(
    'image_format is unknown',
    'write qcow2, raw, vhd or another format that images are made in',
  );
}

/** Glance takes nothing but texts; a boolean is written as Python writes it. */
function properties(cloud: MergedCloud): Record<string, string> {
  const entries = Object.entries(cloud.mapping('disable_vendor_agent'));
  return Object.fromEntries(
    entries.map(([key, value]) => [
      key,
      typeof value === 'boolean' ? (value ? 'True' : 'False') : String(value),
    ]),
  );
}
