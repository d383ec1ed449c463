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

/** What is paused, of the three that can be. */
export function pausedBy({ provider, image, diskimage }: Use): string | undefined {
  if (diskimage.pause) return `diskimage ${diskimage.name}`;
  if (provider.pause) return `provider ${provider.name}`;
  return image.pause ? `image ${image.name} of provider ${provider.name}` : undefined;
}

/** All places that are configured or have uploads. */
export function surveyPlaces(
  providers: readonly ManagedProvider[],
  diskimages: ReadonlyMap<string, ManagedDiskImage>,
  state: ManagerState,
): readonly Place[] {
  const uses = new Map(providers.map((provider) => [provider.name, usesOf(provider, diskimages)]));
  const uploads = uploadsByPlace(state);
  const places: Place[] = [];
  for (const provider of new Set([...uses.keys(), ...uploads.keys()])) {
    const usesHere = uses.get(provider);
    const uploadsHere = uploads.get(provider);
    const providerConfigured = usesHere !== undefined;
    for (const imageName of new Set([...(usesHere?.keys() ?? []), ...(uploadsHere?.keys() ?? [])])) {
      const use = usesHere?.get(imageName);
      const here = uploadsHere?.get(imageName) ?? [];
      const all = here.toSorted(newestFirst(here, (upload) => upload));
      const good = use === undefined ? [] : goodOnes(all, use.diskimage.name, state.builds);
      places.push({ provider, imageName, providerConfigured, use, uploads: all, good });
    }
  }
  return places;
}

function usesOf(
  provider: ManagedProvider,
  diskimages: ReadonlyMap<string, ManagedDiskImage>,
): ReadonlyMap<string, Use> {
  const uses = new Map<string, Use>();
  for (const image of provider.images) {
    const diskimage = diskimages.get(image.diskimage);
    if (diskimage !== undefined) uses.set(image.name, { provider, image, diskimage });
  }
  return uses;
}

function uploadsByPlace({
  uploads,
}: ManagerState): ReadonlyMap<string, ReadonlyMap<string, readonly Upload[]>> {
  const byProvider = Map.groupBy(uploads.values(), ({ provider }) => provider);
  return new Map(
    [...byProvider].map(([provider, here]) => [provider, Map.groupBy(here, ({ imageName }) => imageName)]),
  );
}

function goodOnes(
  uploads: readonly Upload[],
  diskimage: string,
  builds: ReadonlyMap<string, Build>,
): readonly Upload[] {
  const good = uploads.filter(
    (upload) =>
      upload.state === 'ready' &&
      upload.diskimage === diskimage &&
      builds.get(upload.imageId)?.withdrawn !== true,
  );
  return good.toSorted(newestFirst(good, (upload) => buildDateOf(upload, builds)));
}
