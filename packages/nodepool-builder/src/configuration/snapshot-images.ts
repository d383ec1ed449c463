import type { ProviderModule } from '@nodepool-builder/image-builder';
import type { Fault } from './fault.ts';
import { toFault } from './finding.ts';
import { lastOfEachName } from './normalise.ts';
import { INSTANCE_BUILDER } from './on-instance-source.ts';
import { toText } from './scalar.ts';
import type { ConfigurationSource, DiskImageSource, ProviderImageSource, ProviderSource } from './source.ts';
import type { YamlDocument } from './yaml-document.ts';
import { zuulImageEntries } from './zuul-images-source.ts';

/** An image of a provider that nodepool made there itself: one with `base-image`, and without `diskimage`. */
interface SnapshotImage {
  readonly provider: ProviderSource;
  readonly image: ProviderImageSource & { readonly 'base-image': string | number };
}

/** The keys that say how an image is made. */
const RECIPE = ['base-image', 'setup', 'username', 'private-key', 'min-ram', 'name-filter'] as const;

/**
 * A file with images that nodepool made by set-up scripts, as it would be written with `diskimages`: each is a disk image
 * that is made on a machine of the first provider that has it, and uploaded to the others.
 */
export function withSnapshotImages(
  source: ConfigurationSource,
  providers: ReadonlyMap<string, ProviderModule>,
): ConfigurationSource {
  const made = madeHere(source, providers);
  return {
    ...source,
    diskimages: [...(source.diskimages ?? []), ...[...made.values()].map(toDiskImage)],
    providers: (source.providers ?? []).map((provider) => ({
      ...provider,
      images: (provider.images ?? []).map((image) =>
        isSnapshot(image) && made.has(image.name) ? { ...image, diskimage: image.name } : image,
      ),
    })),
  };
}

/** Such images that are not made, or not as their keys say. A site may have them since long: these are warnings. */
export function snapshotImageFaults(
  document: YamlDocument,
  source: ConfigurationSource,
  providers: ReadonlyMap<string, ProviderModule>,
): readonly Fault[] {
  const made = madeHere(source, providers);
  return (source.providers ?? []).flatMap((provider, index) =>
    (provider.images ?? []).flatMap((image, position) => {
      if (!isSnapshot(image)) return [];
      const reason =
        objection(source, providers.get(provider.name), image) ??
        difference(made.get(image.name), { provider, image });
      if (reason === undefined) return [];
      const pointer = `/providers/${index}/images/${position}/base-image`;
      const remedy = made.has(image.name) ? REMEDIES.uploaded : REMEDIES.ignored;
      return [toFault(document, { pointer, severity: 'warning', reason, remedy })];
    }),
  );
}

const REMEDIES = {
  uploaded: 'the image is made once, and uploaded here; make it a disk image, or rename one of the two',
  ignored: 'nothing is built of it; name a diskimage instead, or leave it to nodepool',
};

function isSnapshot(image: ProviderImageSource): image is SnapshotImage['image'] {
  return !image.diskimage && image['base-image'] != null && image['base-image'] !== '';
}

/** The images that are made here, by name, each where it is made. */
function madeHere(
  source: ConfigurationSource,
  providers: ReadonlyMap<string, ProviderModule>,
): ReadonlyMap<string, SnapshotImage> {
  const made = new Map<string, SnapshotImage>();
  for (const provider of lastOfEachName(source.providers ?? [])) {
    for (const image of lastOfEachName(provider.images ?? [])) {
      if (!isSnapshot(image) || made.has(image.name)) continue;
      if (objection(source, providers.get(provider.name), image) === undefined)
        made.set(image.name, { provider, image });
    }
  }
  return made;
}

/** Why an image cannot be made in a provider. */
function objection(
  source: ConfigurationSource,
  module: ProviderModule | undefined,
  { name, setup, 'min-ram': minRam }: ProviderImageSource,
): string | undefined {
  const others = [
    ...(source.diskimages ?? []),
    ...zuulImageEntries(source['zuul-images']).map(({ entry }) => entry),
  ];
  if (others.some((other) => other.name === name))
    return `means nothing: "${name}" is a disk image of its own`;
  if (module?.openInstances === undefined) {
    return `means nothing to a provider of type ${module?.type}: it runs no machines`;
  }
  if (Number.isNaN(Number(minRam ?? 0))) return 'has a min-ram beside it that is no number';
  if (setup == null || setup === '') return 'has no setup beside it: the image would be the base image';
  return source['script-dir'] ? undefined : 'has a setup of script-dir, which is not named';
}

function difference(maker: SnapshotImage | undefined, other: SnapshotImage): string | undefined {
  if (maker === undefined || maker.provider.name === other.provider.name) return undefined;
  const keys = RECIPE.filter((key) => toText(maker.image[key]) !== toText(other.image[key]));
  if (keys.length === 0) return undefined;
  return `means nothing here: the image is made by provider "${maker.provider.name}", with another ${keys.join(', ')}`;
}

function toDiskImage({ provider, image }: SnapshotImage): DiskImageSource {
  const {
    name,
    setup,
    username,
    'private-key': privateKey,
    'min-ram': minRam,
    'name-filter': filter,
  } = image;
  return {
    name,
    builder: INSTANCE_BUILDER,
    'on-instance': {
      provider: provider.name,
      'base-image': toText(image['base-image']),
      setup: toText(setup),
      ...(username != null && { username: toText(username) }),
      ...(privateKey != null && { 'private-key': toText(privateKey) }),
      ...(minRam != null && { 'min-ram': Number(minRam) }),
      ...(filter != null && { 'name-filter': toText(filter) }),
    },
  };
}
