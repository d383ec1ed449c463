import type { Diagnostic, ProviderImages } from '@nodepool-builder/image-builder';
import { lastOfEachName, toText } from '../yaml/values.ts';
import type { DiskImageSource } from './disk-image-schema.ts';
import { type DiskImageEntry, diskImageEntries } from './disk-images.ts';
import type { Modules } from './modules.ts';
import type { ConfigurationParts } from './parts.ts';
import { type ListedProvider, listedProvider } from './provider.ts';
import type { ProviderImageSource } from './provider-schema.ts';

/** Returns whether an image of a provider describes a disk image, like nodepool's images with set-up scripts. */
export function describesDiskImage(image: ProviderImageSource, { builders }: Modules): boolean {
  return [...builders.values()].some(
    ({ entries }) => entries?.providerImages && describes(entries.providerImages, image),
  );
}

function describes({ properties }: ProviderImages, image: ProviderImageSource): boolean {
  const [key = ''] = Object.keys(properties);
  return !image.diskimage && image[key] != null && image[key] !== '';
}

/** Result of {@link describedImages}. */
interface DescribedImages {
  /** All disk images, including those that providers' images describe. */
  readonly diskimages: readonly DiskImageEntry[];
  /** Providers whose images name the disk images that they describe. */
  readonly providers: readonly ListedProvider[];
  /** Warnings about images that are not built, or not as their keys describe. A site may have had them for years. */
  readonly diagnostics: readonly Diagnostic[];
}

/**
 * Turns images of providers that describe a disk image into entries of `diskimages`. Each is built in the first
 * provider that has it, and uploaded to the others.
 */
export function describedImages(parts: ConfigurationParts): DescribedImages {
  const { modules, context } = parts;
  const diagnostics: Diagnostic[] = [];
  const taken = new Set(parts.diskimages.map(({ name }) => name));
  const described: DiskImageSource[] = [];
  let { providers } = parts;
  for (const { type, entries: { providerImages } = {} } of modules.builders.values()) {
    if (providerImages === undefined) continue;
    const reasonAgainst = (image: ProviderImageSource, provider: string): string | undefined =>
      taken.has(image.name)
        ? `has no effect: "${image.name}" is already a disk image`
        : providerImages.reason(image, context.providers.get(provider), context);
    const built = new Map<string, { image: ProviderImageSource; provider: string }>();
    for (const { name: provider, source } of lastOfEachName(providers)) {
      for (const image of lastOfEachName(source.images ?? [])) {
        if (!describes(providerImages, image) || built.has(image.name)) continue;
        if (reasonAgainst(image, provider) === undefined) built.set(image.name, { image, provider });
      }
    }
    const keys = Object.keys(providerImages.properties);
    providers = providers.map(({ pointer: provider, name, source, module }) => {
      const images = (source.images ?? []).map((image, position) => {
        if (!describes(providerImages, image)) return image;
        const builder = built.get(image.name);
        const isBuilder = builder?.provider === name;
        const different =
          builder && keys.filter((key) => toText(builder.image[key]) !== toText(image[key])).join(', ');
        const reason =
          reasonAgainst(image, name) ??
          (!isBuilder && different
            ? `has no effect here: provider "${builder.provider}" builds the image, with another ${different}`
            : undefined);
        if (reason !== undefined) {
          const pointer = `${provider}/images/${position}/${keys[0]}`;
          diagnostics.push({ pointer, severity: 'warning', reason, remedy: builder ? UPLOADED : IGNORED });
        }
        return builder ? { ...image, diskimage: image.name } : image;
      });
      return listedProvider(provider, { ...source, images }, module, context.absolute);
    });
    for (const { image, provider } of built.values()) {
      described.push({ ...providerImages.diskimage(image, provider), name: image.name, builder: type });
    }
  }
  const all = { ...parts.source, diskimages: [...(parts.source.diskimages ?? []), ...described] };
  return { diskimages: diskImageEntries(all, modules, context.absolute), providers, diagnostics };
}

const UPLOADED = 'the image is built once, and uploaded here; make it a disk image, or rename one of the two';
const IGNORED = 'nothing is built from it; name a diskimage instead, or leave it to nodepool';
