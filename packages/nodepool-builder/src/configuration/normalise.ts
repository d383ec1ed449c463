import { createHash } from 'node:crypto';
import { join } from 'node:path';
import type { BuilderModule, ImageFormat } from '@nodepool-builder/image-builder';
import { readSettings } from '@nodepool-builder/image-builder/module-kit';
import type {
  Configuration,
  DiskImageConfiguration,
  ManagerSettings,
  ProviderConfiguration,
} from './configuration.ts';
import type { DiskImageSource } from './disk-image-schema.ts';
import { type DiskImageEntry, type Surroundings, settingsOf } from './disk-images.ts';
import { toGearmanServer } from './gearman-server.ts';
import type { SecureEnvVars } from './option-files.ts';
import { type ConfigurationSource, GENERAL, MANAGER } from './schema.ts';
import { toValidation } from './validation.ts';
import { isMapping, toText } from './values.ts';

/** Parts of a configuration besides the contents of the file. */
export interface NormaliseOptions extends Pick<Configuration, 'file' | 'providers' | 'instanceProviders'> {
  /** Disk images of the file. */
  readonly entries: readonly DiskImageEntry[];
  readonly surroundings: Surroundings;
  /** Contents of the file of `-s`. */
  readonly secure: SecureEnvVars;
}

/** The settings of a file with their defaults, and with absolute paths: relative ones count from its directory. */
export function normalise(source: ConfigurationSource, options: NormaliseOptions): Configuration {
  const { file, entries, providers, instanceProviders, surroundings } = options;
  const { absolute } = surroundings;
  const general = readSettings(GENERAL, source, absolute);
  const { 'images-dir': imagesDir, 'build-log-dir': buildLogDir } = general;
  return {
    file,
    imagesDir,
    ...(buildLogDir !== undefined && { buildLogDir }),
    buildLogRetention: general['build-log-retention'],
    // In bytes.
    largestDisk: general['virtual-size-limit'] * 2 ** 30,
    buildLogLimit: general['build-log-size'] * 2 ** 20,
    buildEnvironment: general['build-environment'] ?? [],
    gearmanServers: (general['gearman-servers'] ?? []).map(toGearmanServer),
    diskimages: [...new Map(entries.map((entry) => [entry.source.name, entry])).values()].flatMap((entry) =>
      entry.source.abstract || entry.module === undefined
        ? []
        : [toDiskImage(entry, entry.module, source, options)],
    ),
    providers,
    instanceProviders,
    manager: toManager(source, absolute),
  };
}

/** A `manager.store` that is a database URL; anything else is a path. */
export const DATABASE_URL: RegExp = /^postgres(?:ql)?:\/\//;

function toManager(
  { manager = {}, 'images-dir': imagesDir }: ConfigurationSource,
  absolute: (path: string) => string,
): ManagerSettings {
  const settings = readSettings(MANAGER, manager, absolute);
  const { store = join(imagesDir, '.nodepool-builder/manager.sqlite') } = settings;
  return {
    store: DATABASE_URL.test(store) ? store : absolute(store),
    timing: {
      retryDelay: settings['retry-delay'],
      longestRetryDelay: settings['longest-retry-delay'],
      leakInterval: settings['leak-interval'],
      absenceLimit: settings['absence-limit'],
    },
  };
}

function toDiskImage(
  { source: written }: DiskImageEntry,
  module: BuilderModule,
  source: ConfigurationSource,
  { providers, surroundings, secure }: NormaliseOptions,
): DiskImageConfiguration {
  const { name } = written;
  const { absolute } = surroundings;
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
    ...(validate && { validation: toValidation(validate, absolute) }),
    keep,
    ...(release !== undefined && { release }),
    envVars,
    secrets: Object.values(secrets),
    ...(source['elements-dir'] && {
      // diskimage-builder takes several directories, separated as in PATH.
      elementsDir: source['elements-dir'].split(':').map(absolute).join(':'),
    }),
    ...(source['script-dir'] && { scriptDir: absolute(source['script-dir']) }),
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
    .filter(({ images }) => images.some((image) => image.diskimage === name))
    .map(({ imageType }) => imageType);
  return [...new Set([...(formats ?? []), ...taken])];
}
