import { type ManagerState, rollbackChoices, whyPaused } from '@nodepool-builder/image-manager';
import type { Configuration } from '../configuration/configuration.ts';
import { isoTime } from './format-records.ts';
import type {
  BuildRecord,
  ImageRecord,
  PlanRecord,
  ProviderImage,
  StatusRecord,
  UploadRecord,
} from './records.ts';
import { obsoleteIn, sumUp } from './shown-state.ts';

/** The records of a configuration's disk images. */
interface KnownImages {
  readonly configuration: Configuration;
  readonly state: ManagerState;
  /** Newest first. */
  readonly builds: readonly BuildRecord[];
  /** Newest first. */
  readonly uploads: readonly UploadRecord[];
  readonly plan?: readonly PlanRecord[];
}

/** Summarises each disk image at the builders and in each provider. */
export function imageRecords({
  configuration: { diskimages, providers },
  state,
  builds,
  uploads,
  plan = [],
}: KnownImages): readonly ImageRecord[] {
  const isObsolete = obsoleteIn(diskimages, state);
  const choicesOf = rollbackChoices(state);
  const buildsOf = Map.groupBy(builds, ({ diskimage }) => diskimage);
  const uploadsOf = Map.groupBy(uploads, (one) => keyOf(one.diskimage, one.provider, one['image-name']));
  const stepsOf = Map.groupBy(plan, ({ diskimage }) => diskimage);
  const imagesOf = Map.groupBy(
    providers.flatMap(({ name, entry }) =>
      entry.images.map((image) => ({ provider: name, image, paused: entry.pause || image.pause })),
    ),
    ({ image }) => image.diskimage,
  );
  return diskimages.map((entry): ImageRecord => {
    const { name: diskimage } = entry;
    const isPaused = whyPaused(state, entry) !== undefined;
    const atBuilders = statusOf(buildsOf.get(diskimage) ?? [], isObsolete);
    const pause = isPaused ? state.pauses.get(diskimage) : undefined;
    return {
      diskimage,
      ...atBuilders,
      paused: isPaused,
      'paused-by': pause?.by ?? null,
      'paused-since': isoTime(pause?.since),
      'rollback-to': choicesOf(diskimage)[1]?.id ?? null,
      providers: (imagesOf.get(diskimage) ?? []).map(
        ({ provider, image: { name }, paused }): ProviderImage => {
          const own = uploadsOf.get(keyOf(diskimage, provider, name)) ?? [];
          const status = statusOf(own, isObsolete);
          const why = status.state === 'missing' && atBuilders.state === 'ready' ? atBuilders.error : null;
          const error = status.error ?? why;
          return { provider, 'image-name': name, ...status, error, paused: isPaused || paused };
        },
      ),
      next: stepsOf.get(diskimage) ?? [],
    };
  });
}

/** State of a disk image at the builders, or of an image in a provider. */
function statusOf<R extends BuildRecord | UploadRecord>(
  records: readonly R[],
  isObsolete: (imageId: string) => boolean,
) {
  const { newest, ...more } = sumUp(records, isObsolete);
  return { ...more, newest: newest?.['image-id'] ?? null, 'newest-requested': newest?.requested ?? null };
}

function keyOf(...names: readonly string[]): string {
  return JSON.stringify(names);
}

/** Lists each disk image at the builders, and then in each of its providers. */
export function statusRecords(images: readonly ImageRecord[]): readonly StatusRecord[] {
  return images.flatMap(({ providers, next: _, 'rollback-to': __, ...image }) => [
    { ...image, provider: null, 'image-name': null },
    ...providers.map((one) => ({ ...image, ...one })),
  ]);
}
