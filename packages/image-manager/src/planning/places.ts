import type { ManagedDiskImage, ManagedProvider, ManagedProviderImage } from '../configuration.ts';
import type { Build, ManagerState, Upload } from '../records.ts';
import { buildDateOf, newestFirst } from './age.ts';

/** Where uploads go: an image name in a provider. */
export interface Place {
  readonly provider: string;
  readonly imageName: string;
  /** Without the provider's configuration nothing can be done there. */
  readonly providerConfigured: boolean;
  /** What the configuration wants there; absent if it wants nothing. */
  readonly use: Use | undefined;
  /** The newest request first. */
  readonly uploads: readonly Upload[];
  /** The ready uploads of the wanted disk image whose builds are not withdrawn; the newest build first. */
  readonly good: readonly Upload[];
}

/** The entries of the configuration that fill a {@link Place}. */
export interface Use {
  readonly provider: ManagedProvider;
  readonly image: ManagedProviderImage;
  readonly diskimage: ManagedDiskImage;
}

/** Identifies a {@link Place}. */
export function placeKey(provider: string, imageName: string): string {
  return JSON.stringify([provider, imageName]);
}

/** What is paused, of the three that can be. */
export function pausedBy({ provider, image, diskimage }: Use): string | undefined {
  if (diskimage.pause) return `diskimage ${diskimage.name}`;
  if (provider.pause) return `provider ${provider.name}`;
  return image.pause ? `image ${image.name} of provider ${provider.name}` : undefined;
}

/** All places that are configured or have uploads, by {@link placeKey}. */
export function surveyPlaces(
  providers: readonly ManagedProvider[],
  diskimages: ReadonlyMap<string, ManagedDiskImage>,
  state: ManagerState,
): ReadonlyMap<string, Place> {
  const uses = usesOf(providers, diskimages);
  const providerNames = new Set(providers.map(({ name }) => name));
  const uploadsAt = Map.groupBy(state.uploads.values(), (each) => placeKey(each.provider, each.imageName));
  const places = new Map<string, Place>();
  for (const key of new Set([...uses.keys(), ...uploadsAt.keys()])) {
    const [provider, imageName] = JSON.parse(key) as [string, string];
    const use = uses.get(key);
    const uploads = (uploadsAt.get(key) ?? []).toSorted(newestFirst);
    const good = use === undefined ? [] : goodOnes(uploads, use.diskimage.name, state.builds);
    const providerConfigured = providerNames.has(provider);
    places.set(key, { provider, imageName, providerConfigured, use, uploads, good });
  }
  return places;
}

function usesOf(
  providers: readonly ManagedProvider[],
  diskimages: ReadonlyMap<string, ManagedDiskImage>,
): ReadonlyMap<string, Use> {
  const uses = new Map<string, Use>();
  for (const provider of providers) {
    for (const image of provider.images) {
      const diskimage = diskimages.get(image.diskimage);
      if (diskimage !== undefined)
        uses.set(placeKey(provider.name, image.name), { provider, image, diskimage });
    }
  }
  return uses;
}

function goodOnes(
  uploads: readonly Upload[],
  diskimage: string,
  builds: ReadonlyMap<string, Build>,
): readonly Upload[] {
  return uploads
    .filter(
      (upload) =>
        upload.state === 'ready' &&
        upload.diskimage === diskimage &&
        builds.get(upload.imageId)?.withdrawn !== true,
    )
    .toSorted((one, other) => newestFirst(buildDateOf(one, builds), buildDateOf(other, builds)));
}
