import type { Diagnostic } from '@nodepool-builder/image-builder';
import type { ProviderImages } from '@nodepool-builder/image-builder/module-kit';
import type { Modules } from '../modules.ts';
import { type Surroundings, sectionEntries } from './disk-images.ts';
import type { ProviderImageSource, ProviderSource } from './provider-schema.ts';
import type { ConfigurationSource } from './schema.ts';
import { lastOfEachName, toText } from './values.ts';

/** True if an image of a provider describes a disk image, as nodepool's images with set-up scripts do. */
export function describesDiskImage(image: ProviderImageSource, { builders }: Modules): boolean {
  return [...builders.values()].some(
    ({ providerImages }) => providerImages && describes(providerImages, image),
  );
}

function describes({ properties }: ProviderImages, image: ProviderImageSource): boolean {
  const [key = ''] = Object.keys(properties);
  return !image.diskimage && image[key] != null && image[key] !== '';
}

/** Result of {@link withProviderImages}. */
interface DescribedImages {
  readonly source: ConfigurationSource;
  /** Warnings of images that are not built, or not as their keys describe: a site may have had them for years. */
  readonly diagnostics: readonly Diagnostic[];
}

/**
 * Turns images of providers that describe a disk image into entries of `diskimages`. Each is built in the first provider
 * that has it, and uploaded to the others.
 */
export function withProviderImages(
  source: ConfigurationSource,
  modules: Modules,
  surroundings: Surroundings,
): DescribedImages {
  const diagnostics: Diagnostic[] = [];
  const taken = [
    ...(source.diskimages ?? []),
    ...sectionEntries(source, modules).map((entry) => entry.source),
  ].map(({ name }) => name);
  let { diskimages, providers } = source;
  for (const { type, providerImages } of modules.builders.values()) {
    if (providerImages === undefined) continue;
    const reasonAgainst = (image: ProviderImageSource, provider: ProviderSource): string | undefined =>
      taken.includes(image.name)
        ? `means nothing: "${image.name}" is a disk image of its own`
        : providerImages.reason(image, surroundings.providers.get(provider.name), surroundings);
    const built = new Map<string, { image: ProviderImageSource; provider: string }>();
    for (const provider of lastOfEachName(providers ?? [])) {
      for (const image of lastOfEachName(provider.images ?? [])) {
        if (!describes(providerImages, image) || built.has(image.name)) continue;
        if (reasonAgainst(image, provider) !== undefined) continue;
        built.set(image.name, { image, provider: provider.name });
      }
    }
    const keys = Object.keys(providerImages.properties);
    providers = (providers ?? []).map((provider, index) => ({
      ...provider,
      images: (provider.images ?? []).map((image, position) => {
        if (!describes(providerImages, image)) return image;
        const builder = built.get(image.name);
        const isBuilder = builder?.provider === provider.name;
        const different =
          builder && keys.filter((key) => toText(builder.image[key]) !== toText(image[key])).join(', ');
        const reason =
          reasonAgainst(image, provider) ??
          (!isBuilder && different
            ? `means nothing here: the image is made by provider "${builder.provider}", with another ${different}`
            : undefined);
        if (reason !== undefined) {
          const pointer = `/providers/${index}/images/${position}/${keys[0]}`;
          diagnostics.push({ pointer, severity: 'warning', reason, remedy: builder ? UPLOADED : IGNORED });
        }
        return builder ? { ...image, diskimage: image.name } : image;
      }),
    }));
    const described = [...built.values()].map(({ image, provider }) => ({
      ...providerImages.diskimage(image, provider),
      name: image.name,
      builder: type,
    }));
    diskimages = [...(diskimages ?? []), ...described];
  }
  return {
    source: { ...source, ...(diskimages && { diskimages }), ...(providers && { providers }) },
    diagnostics,
  };
}

const UPLOADED = 'the image is made once, and uploaded here; make it a disk image, or rename one of the two';
const IGNORED = 'nothing is built of it; name a diskimage instead, or leave it to nodepool';
