import { invalidSettings } from './invalid-settings.ts';
import { type Mapping, mappingAt, mergedDeeply, normalized } from './mapping.ts';
import { readSettingsFile, type SettingsFile } from './read-settings-file.ts';
import { searchDirectories } from './search-path.ts';
import type { SettingsPlace } from './settings-request.ts';

/** Every cloud that files and environment describe. */
export interface KnownClouds {
  readonly clouds: ReadonlyMap<string, Mapping>;
  /** `public-clouds` of `clouds-public.yaml`: a site's own vendor profiles. */
  readonly profiles: ReadonlyMap<string, Mapping>;
  /** The cloud of every provider that names none: that of `OS_CLOUD`, or the environment's. */
  readonly defaultName: string | undefined;
  /** The name of the environment's cloud, whether there is one or not. */
  readonly environmentName: string;
  /** What was read, or where it was looked for in vain; for messages. */
  readonly origin: string;
}

/**
 * Reads `clouds.*`, `secure.*` over it, `clouds-public.*` and `OS_*`.
 *
 * @throws OpenStackError `invalid-settings` if a file has a cloud of the name that is the environment's
 */
export async function knownClouds(place: SettingsPlace): Promise<KnownClouds> {
  const files = await readSettingsFile('clouds', place);
  const secure = await readSettingsFile('secure', place);
  const vendors = await readSettingsFile('clouds-public', place);
  const clouds = entries(files, 'clouds', place);
  for (const [name, secrets] of entries(secure, 'clouds', place)) {
    clouds.set(name, mergedDeeply(clouds.get(name) ?? {}, secrets));
  }
  const origin = originOf([files, secure], place);
  const environmentName = environmentCloudName(place.env);
  if (clouds.has(environmentName)) {
    throw invalidSettings(
      `${origin} has a cloud "${environmentName}", which is the name of the cloud that OS_* variables make`,
      'give one of them another name: that of the environment is set by OS_CLOUD_NAME',
    );
  }
  const environment = environmentCloud(place.env);
  if (environment !== undefined) clouds.set(environmentName, environment);
  const defaultName = place.env.OS_CLOUD || (environment === undefined ? undefined : environmentName);
  return { clouds, profiles: entries(vendors, 'public-clouds', place), defaultName, environmentName, origin };
}

function entries(
  source: SettingsFile | undefined,
  key: 'clouds' | 'public-clouds',
  place: SettingsPlace,
): Map<string, Mapping> {
  if (source === undefined) return new Map();
  if (!Object.hasOwn(source.content, key)) {
    place.warn(`${source.file} has no "${key}": no cloud is read from it`);
  }
  const named = mappingAt(source.content, key);
  return new Map(Object.keys(named).map((name) => [name, normalized(mappingAt(named, name))]));
}

function originOf(sources: readonly (SettingsFile | undefined)[], place: SettingsPlace): string {
  const files = sources.flatMap((source) => (source === undefined ? [] : [source.file]));
  if (files.length > 0) return files.join(' with ');
  return `the environment (no clouds.yaml lies in ${searchDirectories(place).join(', ')})`;
}

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
function environmentCloudName(env: SettingsPlace['env']): string {
  return env.OS_CLOUD_NAME || 'envvars';
}

/** The cloud that `OS_*` describes: `OS_AUTH_URL` is its `auth_url`, and so on. Empty values count as unset. */
function environmentCloud(env: SettingsPlace['env']): Mapping | undefined {
  const set = Object.entries(env).filter(
    ([name, value]) => value && name.startsWith('OS_') && !FOREIGN.some((prefix) => name.startsWith(prefix)),
  );
  if (set.every(([name]) => SELECTORS.has(name))) return undefined;
  return Object.fromEntries(set.map(([name, value]) => [name.slice('OS_'.length).toLowerCase(), value]));
}
