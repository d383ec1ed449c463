import { dirname, resolve } from 'node:path';
import { IMAGE_BUILDERS } from '@nodepool-builder/image-builder';
import type { Configuration, ProviderConfiguration } from './configuration.ts';
import { ConfigurationError, type Fault } from './fault.ts';
import { readDocument } from './read-document.ts';
import { referenceFaults } from './reference-faults.ts';
import { CONFIGURATION_SCHEMA } from './schema.ts';
import { compileSchema, schemaFaults } from './schema-faults.ts';
import type { ConfigurationSource, DiskImageSource, ProviderSource } from './source.ts';

const validate = compileSchema(CONFIGURATION_SCHEMA);

/** A configuration, and what may be wrong with it although it can be used. */
export interface LoadedConfiguration {
  readonly configuration: Configuration;
  readonly warnings: readonly Fault[];
}

/** Settings of {@link loadConfiguration}. */
export interface LoadOptions {
  /** Names that `diskimages[].builder` may have. Default: those of image-builder's registry. */
  readonly builders?: readonly string[];
}

/**
 * Reads a `nodepool.yaml`. Relative paths in it count from the directory of the file.
 *
 * @throws ConfigurationError with every fault, each with line, reason and remedy.
 */
export async function loadConfiguration(
  path: string,
  { builders = Object.keys(IMAGE_BUILDERS) }: LoadOptions = {},
): Promise<LoadedConfiguration> {
  const file = resolve(path);
  const document = await readDocument(file, '-c');
  const faults: Fault[] = [...schemaFaults(document, validate)];
  if (!faults.some(isError)) {
    faults.push(...referenceFaults(document, document.value as ConfigurationSource, builders));
  }
  if (faults.some(isError)) throw new ConfigurationError(file, faults);
  return { configuration: normalise(file, document.value as ConfigurationSource), warnings: faults };
}

function isError(fault: Fault): boolean {
  return fault.severity === 'error';
}

function normalise(file: string, source: ConfigurationSource): Configuration {
  const absolute = (path: string): string => resolve(dirname(file), path);
  const providers = (source.providers ?? []).map((provider) => toProvider(provider, absolute));
  return {
    file,
    imagesDir: absolute(source['images-dir']),
    ...(source['build-log-dir'] !== undefined && { buildLogDir: absolute(source['build-log-dir']) }),
    gearmanServers: (source['gearman-servers'] ?? []).map(({ host, port = 4730 }) => ({ host, port })),
    diskimages: (source.diskimages ?? []).map((diskimage) => ({
      name: diskimage.name,
      builder: diskimage.builder ?? 'dib',
      formats: wantedFormats(diskimage, providers),
      ...(diskimage['build-timeout'] !== undefined && { buildTimeout: diskimage['build-timeout'] }),
      elements: diskimage.elements ?? '',
      release: toText(diskimage.release),
      envVars: isMapping(diskimage['env-vars']) ? diskimage['env-vars'] : {},
      ...(source['elements-dir'] !== undefined && {
        // diskimage-builder takes several directories, separated as in PATH.
        elementsDir: source['elements-dir'].split(':').map(absolute).join(':'),
      }),
      ...(source['script-dir'] !== undefined && { scriptDir: absolute(source['script-dir']) }),
      ...(diskimage['dib-cmd'] !== undefined && { command: diskimage['dib-cmd'] }),
      options: diskimage.options ?? {},
    })),
    providers,
  };
}

function toProvider(provider: ProviderSource, absolute: (path: string) => string): ProviderConfiguration {
  return {
    name: provider.name,
    type: provider.type ?? 'openstack',
    imageType: provider['image-type'] ?? 'qcow2',
    ...(provider.directory !== undefined && { directory: absolute(provider.directory) }),
    images: (provider.images ?? []).map(({ name, diskimage, meta }) => ({
      name,
      ...(diskimage !== undefined && { diskimage }),
      meta: Object.fromEntries(Object.entries(meta ?? {}).map(([key, value]) => [key, toText(value)])),
    })),
  };
}

/** The formats that the providers of a disk image take. */
function wantedFormats(
  diskimage: DiskImageSource,
  providers: readonly ProviderConfiguration[],
): Configuration['diskimages'][number]['formats'] {
  const wanted = providers
    .filter(({ images }) => images.some((image) => image.diskimage === diskimage.name))
    .map(({ imageType }) => imageType);
  return [...new Set(wanted)];
}

function isMapping(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A scalar as PyYAML's `str()` gives it. */
function toText(value: unknown): string {
  if (value === undefined || value === null) return '';
  if (value instanceof Date) return value.toISOString().replace(/T00:00:00\.000Z$/, '');
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  return typeof value === 'string' ? value : JSON.stringify(value);
}
