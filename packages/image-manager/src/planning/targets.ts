import type { ManagedDiskImage, ManagedProvider, ManagedProviderImage } from '../configuration.ts';
import type { Build, ManagerState, Upload } from '../records.ts';
import { buildDateOf, newestFirst } from './age.ts';

/** Destination of uploads: an image name in a provider. */
export interface Target {
  readonly provider: string;
  readonly imageName: string;
  /** False if the provider has left the configuration, and with it the credentials. */
  readonly providerConfigured: boolean;
  /** The configured image; undefined if the configuration has no such image. */
  readonly binding: ImageBinding | undefined;
  /** Newest request first. */
  readonly uploads: readonly Upload[];
  /** Ready uploads of the configured disk image whose builds are not withdrawn, newest build first. */
  readonly good: readonly Upload[];
}

/** The entries of the configuration that bind a disk image to a {@link Target}. */
export interface ImageBinding {
  readonly provider: ManagedProvider;
  readonly image: ManagedProviderImage;
  readonly diskimage: ManagedDiskImage;
}

/** Names the paused entry of a binding; undefined if none is paused. */
export function pausedBy({ provider, image, diskimage }: ImageBinding): string | undefined {
  if (diskimage.pause) return `diskimage ${diskimage.name}`;
  if (provider.pause) return `provider ${provider.name}`;
  return image.pause ? `image ${image.name} of provider ${provider.name}` : undefined;
}

/** Collects the targets that are configured or have uploads. */
export function surveyTargets(
  providers: readonly ManagedProvider[],
  diskimages: ReadonlyMap<string, ManagedDiskImage>,
  state: ManagerState,
): readonly Target[] {
  const bindings = new Map(providers.map((provider) => [provider.name, bindingsOf(provider, diskimages)]));
  const uploads = uploadsByTarget(state);
  const targets: Target[] = [];
  for (const provider of new Set([...bindings.keys(), ...uploads.keys()])) {
    const bindingsHere = bindings.get(provider);
    const uploadsHere = uploads.get(provider);
    const providerConfigured = bindingsHere !== undefined;
    for (const imageName of new Set([...(bindingsHere?.keys() ?? []), ...(uploadsHere?.keys() ?? [])])) {
      const binding = bindingsHere?.get(imageName);
      const here = uploadsHere?.get(imageName) ?? [];
      const all = here.toSorted(newestFirst(here, (upload) => upload));
      const good = binding === undefined ? [] : goodOnes(all, binding.diskimage.name, state.builds);
      targets.push({ provider, imageName, providerConfigured, binding, uploads: all, good });
    }
  }
  return targets;
}

function bindingsOf(
  provider: ManagedProvider,
  diskimages: ReadonlyMap<string, ManagedDiskImage>,
): ReadonlyMap<string, ImageBinding> {
  const bindings = new Map<string, ImageBinding>();
  for (const image of provider.images) {
    const diskimage = diskimages.get(image.diskimage);
    if (diskimage !== undefined) bindings.set(image.name, { provider, image, diskimage });
  }
  return bindings;
}

function uploadsByTarget({
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
