import { createHash } from 'node:crypto';
import { join } from 'node:path';
import type { BuilderModule, ImageFormat } from '@nodepool-builder/image-builder';
import { readSettings } from '@nodepool-builder/image-builder/module-kit';
import type {
  Configuration,
  DiskImageConfiguration,
  GeneralSettings,
  ManagerSettings,
  ProviderConfiguration,
} from './configuration.ts';
import type { DiskImageSource } from './disk-image-schema.ts';
import { type DiskImageEntry, type Surroundings, settingsOf } from './disk-images.ts';
import type { SecureEnvVars } from './option-files.ts';
import { type ConfigurationSource, GENERAL, MANAGER } from './schema.ts';
import { toValidation } from './validation.ts';
import { isMapping, ownSettings, toText } from './values.ts';

/** Reads the keys of the top level in which no module has a part. */
export function readGeneral(
  source: ConfigurationSource,
  absolute: (path: string) => string,
): GeneralSettings {
  const general = ownSettings(GENERAL, source, absolute);
  const { 'elements-dir': elementsDir, 'script-dir': scriptDir } = general;
  return {
    ...general,
    // diskimage-builder takes several directories, separated as in PATH.
    'elements-dir': elementsDir ? elementsDir.split(':').map(absolute).join(':') : null,
    'script-dir': scriptDir ? absolute(scriptDir) : null,
    'build-environment': general['build-environment'] ?? [],
    'gearman-servers': general['gearman-servers'] ?? [],
  };
}

/** Parts of a configuration besides the contents of the file. */
export interface NormaliseOptions extends Pick<Configuration, 'file' | 'providers' | 'instanceProviders'> {
  readonly general: GeneralSettings;
  /** Disk images of the file. */
  readonly entries: readonly DiskImageEntry[];
  readonly surroundings: Surroundings;
  /** Contents of the file of `-s`. */
  readonly secure: SecureEnvVars;
}

/** The settings of a file with their defaults, and with absolute paths: relative ones count from its directory. */
export function normalise(source: ConfigurationSource, options: NormaliseOptions): Configuration {
  const { file, general, entries, providers, instanceProviders, surroundings } = options;
  return {
    ...general,
    file,
    largestDisk: general['virtual-size-limit'] * 2 ** 30,
    buildLogLimit: general['build-log-size'] * 2 ** 20,
    diskimages: [...new Map(entries.map((entry) => [entry.source.name, entry])).values()].flatMap((entry) =>
      entry.source.abstract || entry.module === undefined
        ? []
        : [toDiskImage(entry, entry.module, source, options)],
    ),
    providers,
    instanceProviders,
    manager: toManager(source.manager ?? {}, general, surroundings.absolute),
  };
}

/** A `manager.store` that is a database URL; anything else is a path. */
export const DATABASE_URL: RegExp = /^postgres(?:ql)?:\/\//;

function toManager(
  manager: NonNullable<ConfigurationSource['manager']>,
  { 'images-dir': imagesDir }: GeneralSettings,
  absolute: (path: string) => string,
): ManagerSettings {
  const settings = readSettings(MANAGER, manager, absolute);
  const { store = join(imagesDir, '.nodepool-builder/manager.sqlite') } = settings;
  return {
    ...settings,
    store: DATABASE_URL.test(store) ? store : absolute(store),
  };
}

function toDiskImage(
  { source: written }: DiskImageEntry,
  module: BuilderModule,
  source: ConfigurationSource,
  { general, providers, surroundings, secure }: NormaliseOptions,
): DiskImageConfiguration {
  const { name } = written;
  const { 'elements-dir': elementsDir, 'script-dir': scriptDir } = general;
  const values = settingsOf(written, module, surroundings);
  const settings: unknown = module.read?.(values, { ...surroundings, name }) ?? values;
  const snapshotProvider = module.snapshotProvider?.(settings);
  const {
    'build-timeout': buildTimeout,
    validate,
    pause = false,
    keep = 2,
    options = {},
  }: DiskImageSource = {
    ...written,
    ...values,
  };
  const secrets = secure.get(name) ?? {};
  const envVars = { ...(isMapping(written['env-vars']) && written['env-vars']), ...secrets };
  const release = module.section === undefined ? toText(written.release) : undefined;
  const diskimage: Omit<DiskImageConfiguration, 'digest'> = {
    name,
    builder: module.type,
    settings,
    importsBuilds: module.importsBuilds ?? false,
    pause,
    // The provider that has the snapshot needs no file.
    formats: wantedFormats(
      written,
      providers.filter((provider) => provider.name !== snapshotProvider),
    ),
    ...(buildTimeout !== undefined && { buildTimeout }),
    ...(validate && { validation: toValidation(validate, surroundings.absolute) }),
    keep,
    ...(release !== undefined && { release }),
    envVars,
    secrets: Object.values(secrets),
    ...(elementsDir && { elementsDir }),
    ...(scriptDir && { scriptDir }),
    options,
    ...(module.importsBuilds ? {} : rebuildTimes(written, source)),
  };
  return { ...diskimage, digest: digestOf(module, diskimage) };
}

/**
 * Digest of everything that decides what an image contains. Formats are left out: a missing one is converted before an
 * upload. So are secrets: managers on other hosts do not have them.
 */
function digestOf(
  module: BuilderModule,
  { settings, envVars, secrets, release, options }: Omit<DiskImageConfiguration, 'digest'>,
): string {
  const known = Object.entries(envVars ?? {}).filter(([, value]) => !secrets?.includes(value as string));
  const [first, ...others] = module.content?.(settings) ?? [settings];
  const content = [
    module.type,
    first,
    String(release),
    sorted(Object.fromEntries(known)),
    sorted(options ?? {}),
    ...others,
  ];
  return createHash('sha256').update(JSON.stringify(content)).digest('hex');
}

/** Entries of a mapping, whatever the order of its keys in the file. */
function sorted(mapping: Readonly<Record<string, unknown>>): readonly (readonly [string, unknown])[] {
  return Object.entries(mapping).toSorted(([a], [b]) => (a < b ? -1 : 1));
}

/** A day, unless the entry or `cron` has a time. */
function rebuildTimes(
  { 'rebuild-age': age, 'rebuild-cron': cron }: DiskImageSource,
  source: ConfigurationSource,
): Pick<DiskImageConfiguration, 'rebuildAge' | 'rebuildCron'> {
  const rebuildCron = cron ?? (age === undefined ? source.cron?.['image-update'] : undefined);
  const rebuildAge = age ?? (rebuildCron === undefined ? 86_400 : undefined);
  return {
    ...(rebuildAge !== undefined && { rebuildAge }),
    ...(rebuildCron !== undefined && { rebuildCron }),
  };
}

/** The formats of a disk image: its own, and those that its providers take. */
function wantedFormats(
  { name, formats }: Pick<DiskImageSource, 'name' | 'formats'>,
  providers: readonly ProviderConfiguration[],
): readonly ImageFormat[] {
  const taken = providers
    .filter(({ entry }) => entry.images.some((image) => image.diskimage === name))
    .map(({ imageType }) => imageType);
  return [...new Set([...(formats ?? []), ...taken])];
}
