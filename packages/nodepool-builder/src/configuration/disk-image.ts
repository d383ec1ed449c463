import { hash } from 'node:crypto';
import type { ImageFormat } from '@nodepool-builder/image-builder';
import { BUILD_TIMEOUT } from '@nodepool-builder/image-builder/internal';
import { toText } from '../yaml/values.ts';
import { isMapping } from '../yaml/yaml-document.ts';
import type { DiskImageConfiguration, GeneralSettings, ProviderConfiguration } from './configuration.ts';
import type { DiskImageSource } from './disk-image-schema.ts';
import type { DiskImageEntry } from './disk-images.ts';
import type { SecureEnvVars } from './option-files.ts';
import type { ConfigurationParts } from './parts.ts';
import { toValidation } from './validation.ts';

/**
 * Reads a disk image. Returns undefined for an abstract entry, or one with an unknown builder.
 *
 * @param secure contents of the file of `-s`
 */
export function toDiskImage(
  { name, source: written, module, values }: DiskImageEntry,
  { general, context }: ConfigurationParts,
  providers: readonly ProviderConfiguration[],
  secure: SecureEnvVars,
): DiskImageConfiguration | undefined {
  if (module === undefined) return undefined;
  const {
    'elements-dir': elementsDir,
    'script-dir': scriptDir,
    'public-variables': publicVariables,
  } = general;
  const settings: unknown = module.read?.(values, { ...context, name }) ?? values;
  const { content = settings, snapshotProvider, isImported = false } = module.describe?.(settings) ?? {};
  const {
    'build-timeout': buildTimeout = isImported ? BUILD_TIMEOUT : undefined,
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
  const release = module.entries?.section === undefined ? toText(written.release) : undefined;
  const diskimage: Omit<DiskImageConfiguration, 'digest'> = {
    name,
    builder: module.type,
    settings,
    isImported,
    pause,
    // The provider of the snapshot needs no file.
    formats: wantedFormats(
      written,
      providers.filter((provider) => provider.name !== snapshotProvider),
    ),
    ...(buildTimeout !== undefined && { buildTimeout }),
    ...(validate && { validation: toValidation(validate, context.absolute) }),
    keep,
    ...(release !== undefined && { release }),
    envVars,
    secrets: Object.values(secrets),
    publicVariables,
    ...(elementsDir && { elementsDir }),
    ...(scriptDir && { scriptDir }),
    options,
    ...(isImported ? {} : rebuildTimes(written, general)),
  };
  return { ...diskimage, digest: configurationDigest(diskimage, content) };
}

/**
 * Digest of everything that determines the contents of an image. Formats are excluded, because a missing one is
 * converted before an upload. Secrets are also excluded, because managers on other hosts do not have them.
 */
function configurationDigest(
  { builder, envVars, secrets, release, options }: Omit<DiskImageConfiguration, 'digest'>,
  content: unknown,
): string {
  const known = Object.entries(envVars ?? {}).filter(([, value]) => !secrets?.includes(value as string));
  const all = [builder, String(release), sorted(Object.fromEntries(known)), sorted(options ?? {}), content];
  return hash('sha256', JSON.stringify(all));
}

/** Returns the entries of a mapping, independent of the order of its keys in the file. */
function sorted(mapping: Readonly<Record<string, unknown>>): readonly (readonly [string, unknown])[] {
  return Object.entries(mapping).toSorted(([a], [b]) => (a < b ? -1 : 1));
}

/** Returns the rebuild times of an entry. The default is one day, unless `cron` has a time. */
function rebuildTimes(
  { 'rebuild-age': age, 'rebuild-cron': cron }: DiskImageSource,
  { cron: times }: GeneralSettings,
): Pick<DiskImageConfiguration, 'rebuildAge' | 'rebuildCron'> {
  const rebuildCron = cron ?? (age === undefined ? times?.['image-update'] : undefined);
  const rebuildAge = age ?? (rebuildCron === undefined ? 86_400 : undefined);
  return {
    ...(rebuildAge !== undefined && { rebuildAge }),
    ...(rebuildCron !== undefined && { rebuildCron }),
  };
}

/** Returns the formats of a disk image: its own, and those that its providers need. */
function wantedFormats(
  { name, formats }: Pick<DiskImageSource, 'name' | 'formats'>,
  providers: readonly ProviderConfiguration[],
): readonly ImageFormat[] {
  const taken = providers
    .filter(({ entry }) => entry.images.some((image) => image.diskimage === name))
    .map(({ imageType }) => imageType);
  return [...new Set([...(formats ?? []), ...taken])];
}
