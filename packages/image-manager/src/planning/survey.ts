import { type DatedImage, newestBuildFirst } from '@nodepool-builder/image-builder/internal';
import type {
  ManagedDiskImage,
  ManagedProvider,
  ManagedProviderImage,
  ManagerConfiguration,
} from '../configuration.ts';
import { type Build, type ManagerState, type Upload, whyPaused } from '../records.ts';
import { succeeded } from './back-off.ts';

/** A disk image that is configured or has builds. */
export interface SurveyedDiskImage {
  readonly name: string;
  /** Entry in the configuration; undefined if it was removed. */
  readonly entry: ManagedDiskImage | undefined;
  /** Describes who has paused it; undefined if it is not paused. */
  readonly paused: string | undefined;
  /** Newest first. */
  readonly builds: readonly Build[];
  /** Ready builds that are not withdrawn, newest first. Every provider should have the first. */
  readonly good: readonly Build[];
  /**
   * The newest successful build. It may since have been withdrawn or deleted, which is not a reason to build again at
   * once.
   */
  readonly newestSuccess: Build | undefined;
  /** Targets that are configured to have it. */
  readonly targets: readonly Target[];
}

/** Configuration and state, indexed once for a planning pass. */
export interface Survey {
  /** Disk images by name. */
  readonly diskimages: ReadonlyMap<string, SurveyedDiskImage>;
  readonly targets: readonly Target[];
  /** Rank of each build within its disk image, by image-id, starting with 0 for the newest. */
  readonly ages: ReadonlyMap<string, number>;
  /** Uploads of an image, by its id. */
  readonly uploadsOf: (imageId: string) => readonly Upload[];
}

/** Indexes configuration and state. */
export function surveyOf(configuration: ManagerConfiguration, state: ManagerState): Survey {
  const entries = new Map(configuration.diskimages.map((entry) => [entry.name, entry]));
  const buildsOf = Map.groupBy(newestFirst([...state.builds.values()]), ({ diskimage }) => diskimage);
  const ages = new Map<string, number>();
  for (const builds of buildsOf.values()) {
    for (const [age, { id }] of builds.entries()) ages.set(id, age);
  }
  const targets = surveyTargets(configuration.providers, entries, state, ages);
  const targetsOf = Map.groupBy(targets, ({ binding }) => binding?.diskimage.name);
  const diskimages = new Map<string, SurveyedDiskImage>();
  for (const name of new Set([...entries.keys(), ...buildsOf.keys()])) {
    const builds = buildsOf.get(name) ?? [];
    const entry = entries.get(name);
    diskimages.set(name, {
      name,
      entry,
      paused: entry && whyPaused(state, entry),
      builds,
      good: builds.filter((build) => build.state === 'ready' && !build.withdrawn),
      newestSuccess: builds.find(succeeded),
      targets: targetsOf.get(name) ?? [],
    });
  }
  // Most passes do not need it.
  let grouped: ReadonlyMap<string, readonly Upload[]> | undefined;
  const uploadsOf = (id: string): readonly Upload[] => {
    grouped ??= Map.groupBy(state.uploads.values(), ({ imageId }) => imageId);
    return grouped.get(id) ?? [];
  };
  return { diskimages, targets, ages, uploadsOf };
}

/** Number of ready images to keep. It is at least 1, because the last good one must stay. */
export function keptOf({ keep }: ManagedDiskImage): number {
  return Math.max(1, keep);
}

/** Destination of uploads: an image name in a provider. */
export interface Target {
  readonly provider: string;
  readonly imageName: string;
  /** True if the provider is still configured. If not, its credentials are missing. */
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
  /** Describes what is paused: `provider cloud is paused`. Undefined if nothing is. */
  readonly paused: string | undefined;
}

function pausedPart(
  state: ManagerState,
  { provider, image, diskimage }: Omit<ImageBinding, 'paused'>,
): string | undefined {
  const paused = whyPaused(state, diskimage);
  if (paused !== undefined) return `diskimage ${diskimage.name} is ${paused}`;
  if (provider.pause) return `provider ${provider.name} is paused`;
  return image.pause ? `image ${image.name} of provider ${provider.name} is paused` : undefined;
}

const NONE: readonly Upload[] = [];

/** Collects the targets that are configured or have uploads. */
function surveyTargets(
  providers: readonly ManagedProvider[],
  diskimages: ReadonlyMap<string, ManagedDiskImage>,
  state: ManagerState,
  ages: ReadonlyMap<string, number>,
): readonly Target[] {
  const entries = new Map(providers.map((provider) => [provider.name, provider]));
  // Sorts once, not for each of very many targets.
  const all = newestFirst([...state.uploads.values()]);
  const uploadsOf = Map.groupBy(all, ({ provider }) => provider);
  const targets: Target[] = [];
  for (const provider of new Set([...entries.keys(), ...uploadsOf.keys()])) {
    const entry = entries.get(provider);
    const bindings =
      entry === undefined ? new Map<string, ImageBinding>() : bindingsOf(entry, diskimages, state);
    const uploadsHere = Map.groupBy(uploadsOf.get(provider) ?? [], ({ imageName }) => imageName);
    for (const imageName of new Set([...bindings.keys(), ...uploadsHere.keys()])) {
      const binding = bindings.get(imageName);
      const uploads = uploadsHere.get(imageName) ?? NONE;
      const good =
        binding === undefined ? NONE : goodOnes(uploads, binding.diskimage.name, state.builds, ages);
      targets.push({ provider, imageName, providerConfigured: entry !== undefined, binding, uploads, good });
    }
  }
  return targets;
}

function bindingsOf(
  provider: ManagedProvider,
  diskimages: ReadonlyMap<string, ManagedDiskImage>,
  state: ManagerState,
): ReadonlyMap<string, ImageBinding> {
  const bindings = new Map<string, ImageBinding>();
  for (const image of provider.images) {
    const diskimage = diskimages.get(image.diskimage);
    if (diskimage === undefined) continue;
    const binding = { provider, image, diskimage };
    bindings.set(image.name, { ...binding, paused: pausedPart(state, binding) });
  }
  return bindings;
}

function goodOnes(
  uploads: readonly Upload[],
  diskimage: string,
  builds: ReadonlyMap<string, Build>,
  ages: ReadonlyMap<string, number>,
): readonly Upload[] {
  const isGood = (upload: Upload): boolean =>
    upload.state === 'ready' &&
    upload.diskimage === diskimage &&
    builds.get(upload.imageId)?.withdrawn !== true;
  const ageOf = ({ imageId }: Upload): number => ages.get(imageId) ?? 0;
  // Most targets have only good uploads, in order, and share the list instead of copying it.
  const good = uploads.every(isGood) ? uploads : uploads.filter(isGood);
  const isSorted = good.every(
    (upload, index) => index === 0 || ageOf(good[index - 1] ?? upload) <= ageOf(upload),
  );
  return isSorted ? good : good.toSorted((one, other) => ageOf(one) - ageOf(other));
}

/**
 * Sorts records, newest first, by the store's numbers, or by date if a record has no number. The order does not depend
 * on a clock that was set back. Records of one date are ordered by id.
 */
export function newestFirst<R extends Pick<Build, 'id' | 'requestedAt'>>(
  records: readonly R[],
): readonly R[] {
  return newestBuildFirst(records, dated, Infinity, (one, other) => byText(other.id, one.id));
}

function dated({ id, requestedAt }: Pick<Build, 'id' | 'requestedAt'>): DatedImage {
  return { imageId: id, builtAt: requestedAt };
}

function byText(one: string, other: string): number {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}
