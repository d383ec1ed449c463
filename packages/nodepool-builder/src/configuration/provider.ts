import type {
  ImageFormat,
  ObjectSchema,
  ProviderEntry,
  ProviderHost,
  ProviderModule,
} from '@nodepool-builder/image-builder';
import type { FilterEntry } from '@nodepool-builder/image-builder/module-kit';
import type { ProviderConfiguration, ProviderImageConfiguration, ProviderSettings } from './configuration.ts';
import {
  DEFAULT_PROVIDER_TYPE,
  PROVIDER_KEYS,
  type ProviderImageSource,
  type ProviderSource,
} from './provider-schema.ts';
import { lastOfEachName, ownSettings, toText } from './values.ts';

type ProviderModules = ReadonlyMap<string, ProviderModule>;

/** Makes a path absolute. */
type Absolute = (path: string) => string;

/** The module of an entry of `providers`. The schema has refused entries of other types. */
export function moduleOf(
  { type = DEFAULT_PROVIDER_TYPE }: ProviderSource,
  modules: ProviderModules,
): ProviderModule {
  const module = modules.get(type);
  if (module === undefined) throw new TypeError(`no provider module has the type "${type}"`);
  return module;
}

/** The modules of all providers, by the provider's name. Those that need no entry are included. */
export function modulesByName(
  entries: readonly ProviderSource[],
  modules: ProviderModules,
): ReadonlyMap<string, ProviderModule> {
  return new Map([
    ...implicitEntries(modules).map(({ name, type }) => [name, modules.get(type) as ProviderModule] as const),
    ...entries.map((entry) => [entry.name, moduleOf(entry, modules)] as const),
  ]);
}

/** Entries that need not be written. */
export function implicitEntries(modules: ProviderModules): readonly { name: string; type: string }[] {
  return [...modules.values()].filter(({ implicit }) => implicit).map(({ type }) => ({ name: type, type }));
}

/** Settings of an entry: the keys of all providers, and those of its module. */
export function toEntry(
  source: ProviderSource,
  module: ProviderModule,
  absolute: Absolute,
): ProviderSettings {
  const common = ownSettings({ type: 'object', properties: PROVIDER_KEYS } as const, source, absolute);
  const own = ownSettings<ObjectSchema>(module.settings, source, absolute);
  return { ...own, ...common, name: source.name, images: (source.images ?? []).map(toImage) };
}

/** Reads an entry of `providers`, and what its module reads beyond it. */
export async function toProvider(
  source: ProviderSource,
  module: ProviderModule,
  absolute: Absolute,
  host: ProviderHost,
): Promise<ProviderConfiguration> {
  const entry = toEntry(source, module, absolute);
  const { prepared, imageType: preferred = 'qcow2' } = await prepare(module, entry, host);
  const { name } = source;
  const imageType = source['image-type'] ?? preferred;
  return {
    name,
    module,
    entry: { ...entry, images: lastOfEachName(entry.images) },
    prepared,
    imageType,
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
  const { name, diskimage, pause = false, meta, 'image-filters': filters } = source;
  return {
    name,
    ...(diskimage && { diskimage }),
    pause,
    meta: Object.fromEntries(Object.entries(meta ?? {}).map(([key, value]) => [key, toText(value)])),
    ...(filters && { 'image-filters': toFilterEntries(filters) }),
  };
}

/** Reads `image-filters`; a filter is created when it is used, as ages in it count from then. */
export function toFilterEntries(
  source: NonNullable<ProviderImageSource['image-filters']>,
): readonly FilterEntry[] {
  return source.map(({ name, values }) => ({ name, values: values.map(toText) }));
}

/** Keys of a provider that the Python builder kept as attributes, with its defaults. */
const ATTRIBUTES: Readonly<Record<string, unknown>> = {
  'region-name': null,
  'max-servers': null,
  keypair: null,
  pool: null,
  rate: 1,
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
