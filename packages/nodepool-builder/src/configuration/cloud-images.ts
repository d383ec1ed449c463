import {
  type FilterEntry,
  ImageError,
  type ProviderModule,
  parseImageFilter,
} from '@nodepool-builder/image-builder';
import { lastOfEachName, toText } from '../yaml/values.ts';
import type { CloudImageConfiguration } from './configuration.ts';
import type { CloudImageSource, ProviderSource } from './provider-schema.ts';
import { CLOUD_IMAGE_KEYS } from './unread-keys.ts';

/** An entry of `providers`, with its module. */
interface CloudImageProvider {
  readonly source: ProviderSource;
  readonly module: ProviderModule;
}

type Sources = readonly CloudImageSource[] | null | undefined;

/**
 * Returns the cloud images of a provider, with their filters. Ages in filters are relative to the time of use.
 *
 * @param shared `cloud-images` of the top level, with the filters of this project in any provider
 */
export function cloudImagesOf(
  { source, module }: CloudImageProvider,
  shared: Sources,
): readonly CloudImageConfiguration[] {
  if (module.images === undefined) return [];
  const common = new Map(lastOfEachName(shared ?? []).map((image) => [image.name, image]));
  const own = lastOfEachName(source['cloud-images'] ?? []).map((image) => {
    const substitute = hasCondition(image) ? undefined : common.get(image.name);
    return substitute === undefined ? toCloudImage(image, module) : toCloudImage(substitute, {});
  });
  const names = new Set(own.map(({ name }) => name));
  const others = [...common.values()].filter(({ name }) => !names.has(name));
  return [...own, ...others.map((image) => toCloudImage(image, {}))];
}

/** Keys of an entry of `cloud-images` that are not conditions in any provider. */
const NO_CONDITIONS: ReadonlySet<string> = new Set(['name', ...CLOUD_IMAGE_KEYS]);

function hasCondition(image: CloudImageSource): boolean {
  return Object.entries(image).some(([key, value]) => !NO_CONDITIONS.has(key) && value != null);
}

/** Reads an entry. @param module its keys may be in the entry, in nodepool's spelling */
export function toCloudImage(
  image: CloudImageSource,
  module: Pick<ProviderModule, 'images'>,
): CloudImageConfiguration {
  const { cloudImages } = module.images ?? {};
  const { name, 'image-id': id, 'image-filters': entries, ...others } = image;
  if (id != null && toText(id) !== '') {
    const reason = contradiction(image, module);
    return { name, ...(reason === undefined ? { imageId: toText(id) } : { reason }), filters: [] };
  }
  try {
    const filters = { ...(entries && { 'image-filters': toFilterEntries(entries) }) };
    const isKnown = (key: string): boolean =>
      NO_CONDITIONS.has(key) || Object.hasOwn(cloudImages?.properties ?? {}, key);
    const unknown = Object.keys(others).find((key) => !isKnown(key));
    if (unknown !== undefined) throw unusable(`the key "${unknown}" has no meaning in this provider`);
    const found = cloudImages?.filters({ ...others, name, ...filters }) ?? filters['image-filters'] ?? [];
    if (found.length === 0) throw unusable('it has no condition; add image-filters or an image-id');
    parseImageFilter(found);
    return { name, filters: found };
  } catch (error) {
    if (!(error instanceof ImageError)) throw error;
    return { name, filters: [], reason: error.message };
  }
}

/** Returns why an entry cannot have an `image-id`, which is that it also has conditions. */
export function contradiction(
  image: CloudImageSource,
  { images }: Pick<ProviderModule, 'images'>,
): string | undefined {
  if (image['image-id'] == null || toText(image['image-id']) === '') return undefined;
  const conditions = ['image-filters', ...Object.keys(images?.cloudImages?.properties ?? {})];
  const found = conditions.find((key) => !['', '[]', '{}'].includes(toText(image[key])));
  return found && `image-id and ${found} exclude each other; remove one of them`;
}

function unusable(reason: string): ImageError {
  return new ImageError('invalid-filter', reason);
}

/** Reads `image-filters`. Each filter is created when it is used, because ages in it are relative to that time. */
export function toFilterEntries(
  source: NonNullable<CloudImageSource['image-filters']>,
): readonly FilterEntry[] {
  return source.map(({ name, values }) => ({ name, values: values.map(toText) }));
}
