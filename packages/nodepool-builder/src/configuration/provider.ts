import type {
  ImageFormat,
  ObjectSchema,
  ProviderEntry,
  ProviderHost,
  ProviderModule,
} from '@nodepool-builder/image-builder';
import { lastOfEachName, ownSettings, toText } from '../yaml/values.ts';
import { cloudImagesOf } from './cloud-images.ts';
import type { ProviderConfiguration, ProviderImageConfiguration, ProviderSettings } from './configuration.ts';
import {
  type CloudImageSource,
  DEFAULT_PROVIDER_TYPE,
  PROVIDER_KEYS,
  type ProviderImageSource,
  type ProviderSource,
} from './provider-schema.ts';

/** An entry of `providers`, or an implicit provider. */
export interface ListedProvider {
  readonly pointer: string;
  readonly name: string;
  readonly source: ProviderSource;
  readonly module: ProviderModule;
  readonly entry: ProviderSettings;
}

/** Makes a path absolute. */
type Absolute = (path: string) => string;

/** Returns all entries of `providers`. The schema has rejected unknown types. */
export function listedProviders(
  sources: readonly ProviderSource[],
  modules: ReadonlyMap<string, ProviderModule>,
  absolute: Absolute,
): readonly ListedProvider[] {
  return sources.map((source, index) => {
    const { type = DEFAULT_PROVIDER_TYPE } = source;
    const module = modules.get(type);
    if (module === undefined) throw new TypeError(`no provider module has the type "${type}"`);
    return listedProvider(`/providers/${index}`, source, module, absolute);
  });
}

/** Returns the implicit providers: the types that take no images and require no key. */
export function implicitProviders(
  modules: ReadonlyMap<string, ProviderModule>,
  absolute: Absolute,
): readonly ListedProvider[] {
  const implicit = [...modules.values()].filter(
    ({ images, settings }: ProviderModule<ObjectSchema>) =>
      images === undefined && !settings.required?.length,
  );
  return implicit.map((module) => listedProvider('/providers', { name: module.type }, module, absolute));
}

/** Reads an entry: the shared keys, and its module's keys. */
export function listedProvider(
  pointer: string,
  source: ProviderSource,
  module: ProviderModule,
  absolute: Absolute,
): ListedProvider {
  const { name } = source;
  const common = ownSettings({ type: 'object', properties: PROVIDER_KEYS } as const, source, absolute);
  const own = ownSettings<ObjectSchema>(module.settings, source, absolute);
  const entry = { ...own, ...common, name, images: (source.images ?? []).map(toImage) };
  return { pointer, name, source, module, entry };
}

/** Adds what the module reads in addition to the entry. @param cloudImages `cloud-images` of the top level */
export async function toProvider(
  listed: ListedProvider,
  host: ProviderHost,
  cloudImages: readonly CloudImageSource[] | null = [],
): Promise<ProviderConfiguration> {
  const { name, source, module, entry } = listed;
  const { prepared, imageType: preferred = 'qcow2' } = await prepare(module, entry, host);
  const imageType = source['image-type'] ?? preferred;
  return {
    name,
    module,
    entry: { ...entry, images: lastOfEachName(entry.images) },
    prepared,
    imageType,
    cloudImages: cloudImagesOf(listed, cloudImages),
    attributes: {
      ...templateAttributes(source),
      name,
      image_type: imageType,
      template_hostname: entry['template-hostname'],
    },
  };
}

async function prepare(
  module: ProviderModule,
  entry: ProviderEntry<ObjectSchema>,
  host: ProviderHost,
): Promise<Pick<ProviderConfiguration, 'prepared'> & { readonly imageType?: ImageFormat }> {
  try {
    const { prepared: value, ...rest } = (await module.prepare?.(entry, host)) ?? { prepared: undefined };
    return { prepared: { value }, ...rest };
  } catch (error) {
    return { prepared: { error: error instanceof Error ? error : new Error(String(error)) } };
  }
}

function toImage(source: ProviderImageSource): ProviderImageConfiguration {
  const { name, diskimage, pause = false, meta } = source;
  return {
    name,
    ...(diskimage && { diskimage }),
    pause,
    meta: Object.fromEntries(
      Object.entries(meta ?? {}).flatMap(([key, value]) => (value === null ? [] : [[key, toText(value)]])),
    ),
  };
}

/** Keys of a provider that the Python builder kept as attributes, with its defaults. */
const ATTRIBUTES: Readonly<Record<string, unknown>> = {
  'region-name': null,
  'max-servers': null,
  keypair: null,
  pool: null,
  rate: '1.0',
  'api-timeout': null,
  'boot-timeout': 60,
  'launch-timeout': 3600,
  'ipv6-preferred': null,
  'clean-floating-ips': null,
};

function templateAttributes(source: ProviderSource): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    Object.entries(ATTRIBUTES).map(([key, standard]) => [key.replaceAll('-', '_'), source[key] ?? standard]),
  );
}
