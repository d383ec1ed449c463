import type {
  ImageFormat,
  ObjectSchema,
  ProviderEntry,
  ProviderHost,
  ProviderModule,
} from '@nodepool-builder/image-builder';
import { readSettings } from '@nodepool-builder/image-builder/module-kit';
import type { ProviderConfiguration, ProviderImageConfiguration } from './configuration.ts';
import { toFilterEntries } from './image-filters.ts';
import { programPath } from './program-path.ts';
import { DEFAULT_PROVIDER_TYPE, type ProviderModules } from './provider-schema.ts';
import { toText } from './scalar.ts';
import { lastOfEachName, type ProviderSource } from './source.ts';

const DEFAULT_TEMPLATE = 'template-{image.name}-{timestamp}';

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

/** The settings of an entry that its module is given. */
export function toEntry(
  source: ProviderSource,
  module: ProviderModule,
  absolute: Absolute,
): ProviderEntry<ObjectSchema> {
  const settings: ObjectSchema = module.settings;
  const { name, 'bandwidth-limit': bandwidth, 'image-upload-timeout': timeout } = source;
  const own = Object.entries(source).filter(([key]) => key in settings.properties);
  return {
    ...readSettings(settings, Object.fromEntries(own), absolute),
    name,
    ...(bandwidth !== undefined && { 'bandwidth-limit': bandwidth }),
    ...(timeout !== undefined && { 'image-upload-timeout': timeout }),
    images: (source.images ?? []).map((image) => ({ name: image.name })),
  };
}

/** An entry of `providers` with its defaults, and with what its module reads beyond it. */
export async function toProvider(
  source: ProviderSource,
  module: ProviderModule,
  absolute: Absolute,
  host: ProviderHost,
): Promise<ProviderConfiguration> {
  const entry = toEntry(source, module, absolute);
  const { prepared, imageType: preferred = 'qcow2' } = await prepare(module, entry, host);
  const imageType = source['image-type'] ?? preferred;
  const templateHostname = source['template-hostname'] ?? DEFAULT_TEMPLATE;
  return {
    name: source.name,
    module,
    entry,
    prepared,
    imageType,
    templateHostname,
    attributes: {
      ...templateAttributes(source),
      name: source.name,
      image_type: imageType,
      template_hostname: templateHostname,
    },
    ...(source['image-upload-timeout'] !== undefined && {
      imageUploadTimeout: source['image-upload-timeout'],
    }),
    ...(source['post-upload-hook'] !== undefined && {
      postUploadHook: programPath(source['post-upload-hook'], absolute),
    }),
    pause: source.pause ?? false,
    images: module.openImages === undefined ? [] : toImages(source),
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

function toImages({ images }: ProviderSource): readonly ProviderImageConfiguration[] {
  return lastOfEachName(images ?? []).map(
    ({ name, diskimage, pause = false, meta, 'image-filters': filters }) => ({
      name,
      ...(diskimage && { diskimage }),
      pause,
      meta: Object.fromEntries(Object.entries(meta ?? {}).map(([key, value]) => [key, toText(value)])),
      ...(filters && { imageFilters: toFilterEntries(filters) }),
    }),
  );
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
