import { dirname, join, resolve } from 'node:path';
import type { ImageFormat, ProviderModule } from '@nodepool-builder/image-builder';
import type {
  Configuration,
  DiskImageConfiguration,
  ManagerSettings,
  ProviderConfiguration,
} from './configuration.ts';
import { toGearmanServer } from './gearman-server.ts';
import { toOnInstance } from './on-instance.ts';
import { isMapping, toText } from './scalar.ts';
import type { SecureEnvVars } from './secure-file.ts';
import type { ConfigurationSource, DiskImageSource } from './source.ts';
import { toValidation } from './validation.ts';
import { toZuulImage } from './zuul-image.ts';
import { type ZuulImageSource, zuulImageEntries } from './zuul-images-source.ts';

/**
 * What a file says, with its defaults, and with absolute paths: relative ones count from its directory.
 *
 * @param secure what the file of `-s` adds
 */
export function normalise(
  file: string,
  source: ConfigurationSource,
  { providers, instanceProviders }: Pick<Configuration, 'providers' | 'instanceProviders'>,
  secure: SecureEnvVars,
): Configuration {
  const modules = new Map([...instanceProviders, ...providers].map(({ name, module }) => [name, module]));
  const absolute = (path: string): string => resolve(dirname(file), path);
  return {
    file,
    imagesDir: absolute(source['images-dir']),
    ...(source['build-log-dir'] !== undefined && { buildLogDir: absolute(source['build-log-dir']) }),
    buildLogRetention: source['build-log-retention'] ?? 7,
    largestDisk: largestDiskOf(source),
    buildLogLimit: (source['build-log-size'] ?? 64) * 1024 * 1024,
    buildEnvironment: source['build-environment'] ?? [],
    gearmanServers: (source['gearman-servers'] ?? []).map((server) => toGearmanServer(server, absolute)),
    diskimages: [
      ...lastOfEachName(source.diskimages ?? [])
        .filter(({ abstract }) => !abstract)
        .map((diskimage) => toDiskImage(diskimage, source, providers, { modules, secure, absolute })),
      ...lastOfEachName(zuulImageEntries(source['zuul-images']).map(({ entry }) => entry)).map((entry) =>
        toImageOfZuul(entry, source, providers, absolute),
      ),
    ],
    providers,
    instanceProviders,
    manager: toManager(source, absolute),
  };
}

/** Seconds for the download of an image and its conversions: a server may send without end. */
const ZUUL_BUILD_TIMEOUT = 14_400;

/** The builder of what `zuul-images` has. */
export const ZUUL_BUILDER = 'zuul-artifact';

/** A `manager.store` that is a database URL; anything else is a path. */
export const DATABASE_URL: RegExp = /^postgres(?:ql)?:\/\//;

/** The times have the defaults that the manager documents. */
function toManager(
  { manager = {}, 'images-dir': imagesDir }: ConfigurationSource,
  absolute: (path: string) => string,
): ManagerSettings {
  const { store = join(imagesDir, '.nodepool-builder/manager.sqlite') } = manager;
  return {
    store: DATABASE_URL.test(store) ? store : absolute(store),
    timing: {
      retryDelay: manager['retry-delay'] ?? 60,
      longestRetryDelay: manager['longest-retry-delay'] ?? 3600,
      leakInterval: manager['leak-interval'] ?? 600,
      absenceLimit: manager['absence-limit'] ?? 1800,
    },
  };
}

/** Where a name stands twice, nodepool has always gone by the later entry. */
export function lastOfEachName<T extends { readonly name: string }>(entries: readonly T[]): readonly T[] {
  return [...new Map(entries.map((entry) => [entry.name, entry])).values()];
}

interface DiskImageContext {
  /** By the provider's name. */
  readonly modules: ReadonlyMap<string, ProviderModule>;
  readonly secure: SecureEnvVars;
  readonly absolute: (path: string) => string;
}

function toDiskImage(
  diskimage: DiskImageSource,
  source: ConfigurationSource,
  providers: readonly ProviderConfiguration[],
  { modules, secure, absolute }: DiskImageContext,
): DiskImageConfiguration {
  const secrets = secure.get(diskimage.name) ?? {};
  const { 'on-instance': block } = diskimage;
  // Where it is made it lies then, so that no file is needed for that provider.
  const others = providers.filter(({ name }) => name !== block?.provider);
  return {
    ...anyDiskImage(diskimage, others, absolute),
    builder: diskimage.builder ?? 'dib',
    elements: diskimage.elements ?? '',
    release: toText(diskimage.release),
    envVars: { ...(isMapping(diskimage['env-vars']) && diskimage['env-vars']), ...secrets },
    secrets: Object.values(secrets),
    ...(source['elements-dir'] && {
      // diskimage-builder takes several directories, separated as in PATH.
      elementsDir: source['elements-dir'].split(':').map(absolute).join(':'),
    }),
    ...(source['script-dir'] && { scriptDir: absolute(source['script-dir']) }),
    ...(diskimage['qemu-img-options'] !== undefined && { qemuImgOptions: diskimage['qemu-img-options'] }),
    ...(diskimage['dib-cmd'] !== undefined && { command: diskimage['dib-cmd'] }),
    ...(block !== undefined && {
      onInstance: toOnInstance(block, { name: diskimage.name, providers: modules, absolute }),
    }),
    options: diskimage.options ?? {},
    ...rebuildTimes(diskimage, source),
  };
}

function toImageOfZuul(
  entry: ZuulImageSource,
  source: ConfigurationSource,
  providers: readonly ProviderConfiguration[],
  absolute: (path: string) => string,
): DiskImageConfiguration {
  return {
    buildTimeout: ZUUL_BUILD_TIMEOUT,
    ...anyDiskImage(entry, providers, absolute),
    builder: ZUUL_BUILDER,
    zuul: { ...toZuulImage(entry, absolute), largestDisk: largestDiskOf(source) },
  };
}

/** In bytes. */
function largestDiskOf({ 'virtual-size-limit': gibibytes = 256 }: ConfigurationSource): number {
  return gibibytes * 2 ** 30;
}

/** What the entries of `diskimages` and of `zuul-images` have in common. */
function anyDiskImage(
  source: DiskImageSource | ZuulImageSource,
  providers: readonly ProviderConfiguration[],
  absolute: (path: string) => string,
): Pick<DiskImageConfiguration, 'name' | 'pause' | 'formats' | 'buildTimeout' | 'validation' | 'keep'> {
  const { name, pause = false, 'build-timeout': buildTimeout, validate, keep = 2 } = source;
  return {
    name,
    pause,
    formats: wantedFormats(source, providers),
    ...(buildTimeout !== undefined && { buildTimeout }),
    ...(validate && { validation: toValidation(validate, absolute) }),
    keep,
  };
}

/** A day, unless somebody says when: the entry itself, or `cron` for all that have no word of their own. */
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
