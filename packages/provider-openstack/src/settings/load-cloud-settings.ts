import type { ImageFormat } from '@nodepool-builder/image-builder';
import { isImageFormat } from '@nodepool-builder/image-builder/module-kit';
import type { CloudSettings } from '../cloud-settings.ts';
import { cloudAuth } from './cloud-auth.ts';
import { credentialsOf } from './credentials.ts';
import { invalidSettings } from './invalid-settings.ts';
import { type KnownClouds, knownClouds } from './known-clouds.ts';
import { type Mapping, overlaid } from './mapping.ts';
import { MergedCloud } from './merged-cloud.ts';
import { chosenRegion } from './region.ts';
import { serviceSettings } from './services.ts';
import type { NodepoolCredentials, SettingsPlace, SettingsRequest } from './settings-request.ts';
import { tlsSettings } from './tls-settings.ts';
import { VENDOR_PROFILES } from './vendor-profiles.ts';

const DEFAULT_API_TIMEOUT = 60;

/** Glance takes nothing but texts; a boolean has always come as Python writes it. */
const PYTHON_BOOLEANS: ReadonlyMap<unknown, string> = new Map([
  [true, 'True'],
  [false, 'False'],
]);

/**
 * Finds, merges and resolves the settings of a provider's cloud as os-client-config 1.22 does: vendor profile, then the
 * cloud of `clouds.yaml` with `secure.yaml` over it or the one that `OS_*` make, then its region, then the provider itself.
 *
 * @throws OpenStackError `invalid-settings` for a cloud or a region that is not there, and for what is missing or wrong
 */
export async function loadCloudSettings(
  request: SettingsRequest,
  place: SettingsPlace,
): Promise<CloudSettings> {
  const known = await knownClouds(place);
  const { provider } = request;
  const cloudName = request.cloud ?? defaultCloud(known, provider);
  const cloud = cloudName === undefined ? noCloud(known, provider) : knownCloud(cloudName, known, provider);
  const subject = cloudName === undefined ? '' : `, cloud "${cloudName}"`;
  const origin = cloudName === known.environmentName ? 'the OS_* variables' : known.origin;
  const where = `provider "${provider.name}"${subject} of ${origin}`;
  const profile = vendorProfile(cloud, known, where, place.warn);
  const region = chosenRegion(request.regionName, { where, cloud, profile });
  const values = {
    ...overlaid(overlaid(profile, cloud), region?.values ?? {}),
    region_name: region?.name,
  };
  const merged = new MergedCloud(values, where, place.warn);
  return {
    name: cloudName ?? provider.name,
    auth: cloudAuth(merged, credentialsOf(values, provider)),
    image: serviceSettings('image', merged),
    objectStore: serviceSettings('object-store', merged),
    compute: serviceSettings('compute', merged),
    network: serviceSettings('network', merged),
    tls: tlsSettings(merged, place),
    apiTimeout: provider.apiTimeout ?? timeoutOf(merged) ?? DEFAULT_API_TIMEOUT,
    imageFormat: imageFormat(merged),
    imageApiUseTasks: merged.flag('image_api_use_tasks') ?? false,
    disableVendorAgent: properties(merged),
  };
}

/**
 * The cloud of a provider that names none. Only a provider without credentials takes the only cloud of `clouds.yaml`:
 * with credentials it never did until os-client-config 1.29, and images would go where its credentials do not lead.
 */
function defaultCloud(
  { clouds, defaultName }: KnownClouds,
  provider: NodepoolCredentials,
): string | undefined {
  if (hasOwnCredentials(provider)) return clouds.size === 0 ? undefined : defaultName;
  const [only] = clouds.size === 1 ? clouds.keys() : [];
  return defaultName ?? only;
}

function hasOwnCredentials({ username, password, authUrl }: NodepoolCredentials): boolean {
  return [username, password, authUrl].some((value) => value !== undefined);
}

/** A provider without a cloud has to have all credentials itself. */
function noCloud({ clouds, origin }: KnownClouds, provider: NodepoolCredentials): Mapping {
  if (clouds.size === 0 || provider.authUrl) return {};
  if (hasOwnCredentials(provider)) {
    throw invalidSettings(
      `provider "${provider.name}" has credentials, but neither auth-url nor cloud`,
      'add auth-url, or name the cloud of clouds.yaml that the credentials are for',
    );
  }
  throw invalidSettings(
    `provider "${provider.name}" names no cloud, and ${origin} has several: ${[...clouds.keys()].join(', ')}`,
    'name one with "cloud" of the provider, or with OS_CLOUD',
  );
}

function knownCloud(name: string, { clouds, origin }: KnownClouds, provider: NodepoolCredentials): Mapping {
  const cloud = clouds.get(name);
  if (cloud !== undefined) return cloud;
  const others = clouds.size === 0 ? 'none' : [...clouds.keys()].join(', ');
  throw invalidSettings(
    `provider "${provider.name}": there is no cloud "${name}" in ${origin}; the clouds there: ${others}`,
    'correct "cloud" of the provider or OS_CLOUD, or add the cloud to clouds.yaml',
  );
}

/** `api_timeout`, or a `…_timeout` of old that was one service's: there is one for all. */
function timeoutOf(cloud: MergedCloud): number | undefined {
  const key =
    cloud.keys().findLast((name) => name.endsWith('_timeout') && name !== 'api_timeout') ?? 'api_timeout';
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

function properties(cloud: MergedCloud): Record<string, string> {
  const entries = Object.entries(cloud.mapping('disable_vendor_agent'));
  return Object.fromEntries(
    entries.map(([key, value]) => [key, PYTHON_BOOLEANS.get(value) ?? String(value)]),
  );
}

/**
 * What a cloud's `profile` (once called `cloud`) lays below its own settings.
 *
 * @param where the cloud and its files, for messages
 * @throws OpenStackError `invalid-settings` for the address of a profile, which openstacksdk would fetch
 */
function vendorProfile(
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
