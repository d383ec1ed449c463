import { readFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { foreignPart } from '@nodepool-builder/image-builder/internal';
import { boolCoreTag, FAILSAFE_SCHEMA, loadAll, mergeTag, nullYaml11Tag, YAMLException } from 'js-yaml';
import {
  invalidSettings,
  isMapping,
  type Mapping,
  mappingAt,
  mergedDeeply,
  normalized,
} from './merged-cloud.ts';

/** Sources of the settings. */
export interface SettingsPlace {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  /** User's home directory. */
  readonly home: string;
  /** Receives warnings, such as an unreadable file or an unknown profile. */
  readonly warn: (message: string) => void;
}

type SearchPlace = Omit<SettingsPlace, 'warn'>;

/** Environment variables of the files, by file name without suffix. The file that the variable names comes first. */
const FILES = {
  clouds: 'OS_CLIENT_CONFIG_FILE',
  secure: 'OS_CLIENT_SECURE_FILE',
  'clouds-public': undefined,
} as const;

type FileKind = keyof typeof FILES;

/** Lists the directories to search, in order. Only the first readable file is used. */
function searchDirectories({ env, home, cwd }: SearchPlace): readonly string[] {
  const site = (env.XDG_CONFIG_DIRS || '/etc/xdg').split(':').filter((directory) => directory !== '');
  return [
    ...new Set([
      cwd,
      join(env.XDG_CONFIG_HOME || join(home, '.config'), 'openstack'),
      join(home, '.config', 'openstack'),
      ...site.map((directory) => join(directory, 'openstack')),
      '/etc/openstack',
    ]),
  ];
}

/** Returns the absolute path of the file that the variable names. */
function namedFile(kind: FileKind, place: SearchPlace): string | undefined {
  const named = place.env[FILES[kind] ?? ''];
  return named ? resolve(place.cwd, named) : undefined;
}

/** Lists all possible paths of a kind of file, in search order. */
function possibleFiles(kind: FileKind, place: SearchPlace): readonly string[] {
  const found = searchDirectories(place).flatMap((directory) =>
    ['.yaml', '.yml', '.json'].map((suffix) => join(directory, kind + suffix)),
  );
  const named = namedFile(kind, place);
  return named === undefined ? found : [named, ...found];
}

/** Lists all files that `loadCloudSettings` reads, or would read if they existed. */
export function cloudSettingsFiles(place: SearchPlace): readonly string[] {
  return (Object.keys(FILES) as FileKind[]).flatMap((kind) => possibleFiles(kind, place));
}

interface SettingsFile {
  readonly file: string;
  readonly content: Mapping;
}

/** Numbers remain text, because a project or password may be 0123 or 1e5. */
const SCHEMA = FAILSAFE_SCHEMA.withTags(mergeTag, boolCoreTag, nullYaml11Tag);

/** Reads the first readable file of a kind that contains a mapping. Warns about unreadable files before it. */
async function readSettingsFile(kind: FileKind, place: SettingsPlace): Promise<SettingsFile | undefined> {
  for (const file of possibleFiles(kind, place)) {
    try {
      const content = parse(file, await readFile(file, 'utf8'));
      // A file that another user leaves in root's working directory must not receive root's passwords.
      const isFound = dirname(file) === place.cwd && file !== namedFile(kind, place);
      const foreign = isFound ? foreignPart(file) : undefined;
      if (isMapping(content) && foreign === undefined) return { file, content };
      place.warn(`${file} is skipped: ${foreign ?? 'it is not a mapping'}`);
    } catch (error) {
      const reason = readErrorReason(error as Error);
      if (reason !== undefined) place.warn(`${file} is skipped: ${reason}`);
      else if (file === namedFile(kind, place)) {
        place.warn(`${file} does not exist, but ${FILES[kind]} names it`);
      }
    }
  }
  return undefined;
}

function parse(file: string, text: string): unknown {
  if (file.endsWith('json')) return JSON.parse(text);
  // With `json`, js-yaml accepts a duplicate key and uses its last value, like PyYAML.
  const [content = {}, ...others] = loadAll(text, { schema: SCHEMA, json: true });
  return others.length === 0 ? content : undefined;
}

/** Describes a parser or file error without quoting the text, which may be a password. Undefined for a missing file. */
function readErrorReason(error: Error): string | undefined {
  if (error instanceof YAMLException) {
    const { line = 0, column = 0 } = error.mark ?? {};
    return `it is not valid YAML at line ${line + 1}, column ${column + 1}`;
  }
  if (error instanceof SyntaxError) return 'it is not valid JSON';
  const { code } = error as NodeJS.ErrnoException;
  if (code === undefined) throw error;
  return code === 'ENOENT' || code === 'ENOTDIR' ? undefined : `it cannot be read (${code})`;
}

/** All clouds in the files and the environment. */
export interface KnownClouds {
  readonly clouds: ReadonlyMap<string, Mapping>;
  /** Vendor profiles of the site: `public-clouds` of `clouds-public.yaml`. */
  readonly profiles: ReadonlyMap<string, Mapping>;
  /** Default cloud of a provider: the cloud of `OS_CLOUD`, or the environment's. */
  readonly defaultName: string | undefined;
  /** Name of the environment's cloud, even if the environment defines none. */
  readonly environmentName: string;
  /** Files, or searched directories, for messages. */
  readonly origin: string;
}

/**
 * Reads `clouds.*`, `secure.*`, `clouds-public.*` and the `OS_*` variables. `secure.*` takes precedence.
 *
 * @throws CloudError `invalid-settings` if a file contains a cloud with the name of the environment's cloud
 */
export async function knownClouds(place: SettingsPlace): Promise<KnownClouds> {
  const files = await readSettingsFile('clouds', place);
  const secure = await readSettingsFile('secure', place);
  const vendors = await readSettingsFile('clouds-public', place);
  const clouds = entries(files, 'clouds', place);
  for (const [name, secrets] of entries(secure, 'clouds', place)) {
    clouds.set(name, mergedDeeply(clouds.get(name) ?? {}, secrets));
  }
  const read = [files, secure].flatMap((source) => source?.file ?? []);
  const directories = searchDirectories(place).join(', ');
  const named = namedFile('clouds', place);
  const missing = named === undefined ? '' : `${FILES.clouds} names ${named}, which cannot be used, and `;
  const origin = read.join(' with ') || `the environment (${missing}no clouds.yaml exists in ${directories})`;
  const environmentName = place.env.OS_CLOUD_NAME || 'envvars';
  if (clouds.has(environmentName)) {
    throw invalidSettings(
      `${origin} has a cloud "${environmentName}", but that is also the name of the cloud of the OS_* variables`,
      'rename the cloud in the file, or set OS_CLOUD_NAME to another name',
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
  if (!Object.hasOwn(source.content, key)) place.warn(`${source.file} has no "${key}": it is ignored`);
  const named = mappingAt(source.content, key);
  return new Map(Object.keys(named).map((name) => [name, normalized(mappingAt(named, name))]));
}

/** Variables that select a cloud or a connection but do not define a cloud by themselves. */
const SELECTORS = new Set([
  'OS_CLOUD',
  'OS_REGION_NAME',
  'OS_CLIENT_CONFIG_FILE',
  'OS_CLIENT_SECURE_FILE',
  'OS_CLOUD_NAME',
  'OS_FORCE_IPV4',
  'OS_PREFER_IPV6',
]);

/** Variables that define a cloud, without those of test tools: `OS_AUTH_URL` becomes `auth_url`, and so on. */
const CLOUD_VARIABLE = /^OS_(?!TEST|STD|LOG)/;

/** Reads the cloud of the `OS_*` variables. Empty values count as unset. */
function environmentCloud(env: SettingsPlace['env']): Mapping | undefined {
  const set = Object.entries(env).filter(([name, value]) => value && CLOUD_VARIABLE.test(name));
  if (set.every(([name]) => SELECTORS.has(name))) return undefined;
  return Object.fromEntries(set.map(([name, value]) => [name.slice('OS_'.length).toLowerCase(), value]));
}
