import type { NodepoolCredentials } from './cloud-auth.ts';
import { type KnownClouds, knownClouds, type SettingsPlace } from './cloud-files.ts';
import { invalidSettings, isMapping, type Mapping, MergedCloud, mappingAt } from './merged-cloud.ts';
import { VENDOR_PROFILES } from './vendor-profiles.ts';

/** A provider and its cloud. */
export interface SettingsRequest {
  readonly provider: NodepoolCredentials;
  /**
   * `cloud` of the provider. Default: `OS_CLOUD`, else the environment's cloud, else the only cloud, unless the
   * provider has credentials.
   */
  readonly cloud?: string | undefined;
  /** `region-name` of the provider. Default: the cloud's first region. */
  readonly regionName?: string | undefined;
}

/**
 * Chooses a provider's cloud and region, and merges their layers: vendor profile, cloud, region.
 *
 * @throws CloudError `invalid-settings` for an unknown cloud or region
 */
export async function chooseCloud(request: SettingsRequest, place: SettingsPlace): Promise<MergedCloud> {
  const { provider, regionName } = request;
  const known = await knownClouds(place);
  const name = request.cloud ?? defaultCloud(known, provider);
  const cloud = name === undefined ? noCloud(known, provider) : namedCloud(name, known, provider);
  const subject = name === undefined ? '' : `, cloud "${name}"`;
  const origin = name === known.environmentName ? 'the OS_* variables' : known.origin;
  const where = `provider "${provider.name}"${subject} of ${origin}`;
  const profile = vendorProfile(cloud, known, where, place.warn);
  const region = chooseRegion(regionName, { where, cloud, profile });
  const layers = [profile, cloud, region?.values ?? {}];
  const values = Object.assign({}, ...layers, { region_name: region?.name });
  // `auth` is merged key by key; any other key is replaced.
  const auth = Object.assign({}, ...layers.map((layer) => mappingAt(layer, 'auth')));
  return new MergedCloud(name ?? provider.name, { ...values, auth }, where, place.warn);
}

/**
 * Returns the name of the default cloud. A provider with credentials does not default to the only cloud of
 * `clouds.yaml`, because images would go to the wrong cloud. os-client-config before 1.29 did the same.
 */
function defaultCloud(
  { clouds, defaultName }: KnownClouds,
  provider: NodepoolCredentials,
): string | undefined {
  if (hasCredentials(provider)) return clouds.size === 0 ? undefined : defaultName;
  const [only] = clouds.size === 1 ? clouds.keys() : [];
  return defaultName ?? only;
}

function hasCredentials({ username, password, authUrl }: NodepoolCredentials): boolean {
  return [username, password, authUrl].some((value) => value !== undefined);
}

/** Checks that a provider without a cloud has an auth-url. */
function noCloud({ clouds, origin }: KnownClouds, provider: NodepoolCredentials): Mapping {
  if (clouds.size === 0 || provider.authUrl) return {};
  if (hasCredentials(provider)) {
    throw invalidSettings(
      `provider "${provider.name}" has credentials, but neither auth-url nor cloud`,
      'add auth-url, or set cloud to the entry in clouds.yaml that accepts the credentials',
    );
  }
  throw invalidSettings(
    `provider "${provider.name}" has no key "cloud", and ${origin} has several clouds: ${[...clouds.keys()].join(', ')}`,
    'set "cloud" of the provider, or OS_CLOUD',
  );
}

function namedCloud(name: string, { clouds, origin }: KnownClouds, provider: NodepoolCredentials): Mapping {
  const cloud = clouds.get(name);
  if (cloud !== undefined) return cloud;
  const names = [...clouds.keys()].join(', ') || 'none';
  throw invalidSettings(
    `provider "${provider.name}": the cloud "${name}" is not in ${origin}; known clouds: ${names}`,
    'correct "cloud" of the provider or OS_CLOUD, or add the cloud to clouds.yaml',
  );
}

/**
 * Returns the layer below the cloud: the vendor profile that its `profile`, formerly `cloud`, names.
 *
 * @throws CloudError `invalid-settings` if the profile is a URL, which openstacksdk would download
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
      `${where} names a profile by URL, which is not supported`,
      'name a vendor, or write auth_url and regions into clouds.yaml',
    );
  }
  if (profile === undefined) warn(`${where}: the vendor profile "${name}" is unknown and ignored`);
  else if (profile.status === 'deprecated') {
    warn(`${where}: its profile is deprecated: ${String(profile.message)}`);
  }
  return profile ?? {};
}

interface Region {
  readonly name: string;
  /** Settings that differ in this region. */
  readonly values: Mapping;
}

interface RegionSource {
  /** Provider, cloud and configuration files, for messages. */
  readonly where: string;
  readonly cloud: Mapping;
  readonly profile: Mapping;
}

/** Returns the requested region, or the cloud's first one. A cloud without a region list accepts any region. */
function chooseRegion(wanted: string | undefined, source: RegionSource): Region | undefined {
  const regions = regionsOf(source);
  if (!wanted) return regions[0];
  if (regions.length === 0) return { name: wanted, values: {} };
  const region = regions.find(({ name }) => name === wanted);
  if (region !== undefined) return region;
  const names = regions.map(({ name }) => name).join(', ');
  throw invalidSettings(
    `${source.where} has no region "${wanted}"; its regions are ${names}`,
    'correct region-name (case-sensitive), or add the region to "regions" of the cloud',
  );
}

function regionsOf({ where, cloud, profile }: RegionSource): readonly Region[] {
  const listed = cloud.regions ?? cloud.region_name ?? profile.regions ?? profile.region_name ?? [];
  // Older files have several regions in one text, separated by commas.
  const regions: unknown = typeof listed === 'string' ? listed.split(',') : listed;
  const read = Array.isArray(regions) ? regions.map(regionOf) : [undefined];
  const valid = read.filter((region) => region !== undefined);
  if (valid.length === read.length) return valid;
  throw invalidSettings(
    `${where} has "regions" that are not a list of regions`,
    'write a name for each, or a mapping with only "name" and "values"',
  );
}

/** Parses a region; undefined if the entry is invalid. */
function regionOf(entry: unknown): Region | undefined {
  if (typeof entry === 'string') return { name: entry, values: {} };
  if (!isMapping(entry) || typeof entry.name !== 'string') return undefined;
  if (Object.keys(entry).some((key) => key !== 'name' && key !== 'values')) return undefined;
  return { name: entry.name, values: mappingAt(entry, 'values') };
}
