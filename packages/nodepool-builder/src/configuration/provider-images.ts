import type { BuilderModule } from '@nodepool-builder/image-builder';
import type { ProviderImages } from '@nodepool-builder/image-builder/module-kit';
import type { Modules } from '../modules.ts';
import { type Surroundings, sectionEntries } from './disk-images.ts';
import type { Fault } from './fault.ts';
import { toFault } from './finding.ts';
import { toText } from './scalar.ts';
import {
  type ConfigurationSource,
  type DiskImageSource,
  lastOfEachName,
  type ProviderImageSource,
  type ProviderSource,
} from './source.ts';
import type { YamlDocument } from './yaml-document.ts';

/** An image of a provider that describes a disk image itself, and the provider that builds it. */
interface DescribedImage {
  readonly provider: ProviderSource;
  readonly image: ProviderImageSource;
}

/** What describing images takes. */
interface Describing {
  readonly source: ConfigurationSource;
  readonly modules: Modules;
  readonly surroundings: Surroundings;
}

/**
 * Turns images of providers that describe a disk image, as nodepool's set-up scripts do, into entries of `diskimages`.
 * Each is built in the first provider that has it, and uploaded to the others.
 */
export function withProviderImages(describing: Describing): ConfigurationSource {
  const { source, modules } = describing;
  let { diskimages, providers } = source;
  for (const module of modules.builders.values()) {
    const { providerImages } = module;
    if (providerImages === undefined) continue;
    const built = builtImages(providerImages, describing);
    const described = [...built.values()].map((one) => toDiskImage(module, providerImages, one));
    diskimages = [...(diskimages ?? []), ...described];
    providers = (providers ?? []).map((provider) => ({
      ...provider,
      images: (provider.images ?? []).map((image) =>
        describes(providerImages, image) && built.has(image.name)
          ? { ...image, diskimage: image.name }
          : image,
      ),
    }));
  }
  return { ...source, ...(diskimages && { diskimages }), ...(providers && { providers }) };
}

/** Warns of images that are not built, or not as their keys describe: a site may have had them for years. */
export function providerImageFaults(document: YamlDocument, describing: Describing): readonly Fault[] {
  return [...describing.modules.builders.values()].flatMap(({ providerImages }) =>
    providerImages === undefined ? [] : faultsOf(document, providerImages, describing),
  );
}

function faultsOf(document: YamlDocument, module: ProviderImages, describing: Describing): readonly Fault[] {
  const built = builtImages(module, describing);
  const [key] = module.keys;
  return (describing.source.providers ?? []).flatMap((provider, index) =>
    (provider.images ?? []).flatMap((image, position) => {
      if (!describes(module, image)) return [];
      const described = { provider, image };
      const reason =
        reasonAgainst(module, described, describing) ?? difference(module, built.get(image.name), described);
      if (reason === undefined) return [];
      const pointer = `/providers/${index}/images/${position}/${key}`;
      const remedy = built.has(image.name) ? REMEDIES.uploaded : REMEDIES.ignored;
      return [toFault(document, { pointer, severity: 'warning', reason, remedy })];
    }),
  );
}

const REMEDIES = {
  uploaded: 'the image is made once, and uploaded here; make it a disk image, or rename one of the two',
  ignored: 'nothing is built of it; name a diskimage instead, or leave it to nodepool',
};

function describes({ keys: [key = ''] }: ProviderImages, image: ProviderImageSource): boolean {
  return !image.diskimage && image[key] != null && image[key] !== '';
}

/** The images that are built, by name, each in the provider that builds it. */
function builtImages(module: ProviderImages, describing: Describing): ReadonlyMap<string, DescribedImage> {
  const built = new Map<string, DescribedImage>();
  for (const provider of lastOfEachName(describing.source.providers ?? [])) {
    for (const image of lastOfEachName(provider.images ?? [])) {
      if (!describes(module, image) || built.has(image.name)) continue;
      const described = { provider, image };
      if (reasonAgainst(module, described, describing) === undefined) built.set(image.name, described);
    }
  }
  return built;
}

/** Why an image cannot be built in a provider. */
function reasonAgainst(
  module: ProviderImages,
  { provider, image }: DescribedImage,
  { source, modules, surroundings }: Describing,
): string | undefined {
  const others = [
    ...(source.diskimages ?? []),
    ...sectionEntries(source, modules).map((entry) => entry.source),
  ];
  if (others.some(({ name }) => name === image.name)) {
    return `means nothing: "${image.name}" is a disk image of its own`;
  }
  return module.reason(image, surroundings.providers.get(provider.name), surroundings);
}

function difference(
  { keys }: ProviderImages,
  builder: DescribedImage | undefined,
  other: DescribedImage,
): string | undefined {
  if (builder === undefined || builder.provider.name === other.provider.name) return undefined;
  const different = keys.filter((key) => toText(builder.image[key]) !== toText(other.image[key]));
  if (different.length === 0) return undefined;
  const name = builder.provider.name;
  return `means nothing here: the image is made by provider "${name}", with another ${different.join(', ')}`;
}

function toDiskImage(
  { type }: BuilderModule,
  providerImages: ProviderImages,
  { provider, image }: DescribedImage,
): DiskImageSource {
  return { ...providerImages.diskimage(image, provider.name), name: image.name, builder: type };
}
