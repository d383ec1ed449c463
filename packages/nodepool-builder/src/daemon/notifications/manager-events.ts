import { type Build, type ManagerState, type Upload, whyPaused } from '@nodepool-builder/image-manager';
import type { Configuration } from '../../configuration/configuration.ts';
import type { EventFacts, JobEnd } from './event.ts';

/** The event of a build or an upload that has ended. */
export function eventOfEnd(record: Build | Upload, { builds, uploads }: ManagerState): EventFacts {
  const { id, diskimage, endedAt = Date.now(), error = null, cancelledBy = null } = record;
  const upload = 'provider' in record ? record : undefined;
  const others: readonly (Build | Upload)[] =
    upload === undefined
      ? [...builds.values()].filter((other) => other.diskimage === diskimage)
      : [...uploads.values()].filter(
          ({ provider, imageName }) => provider === upload.provider && imageName === upload.imageName,
        );
  const [kind, end] = [upload === undefined ? 'build' : 'upload', endOf(record, others)] as const;
  return {
    id: `${kind}/${id}/${end}`,
    event: `${kind}-${end}`,
    time: new Date(endedAt).toISOString(),
    diskimage,
    error,
    'cancelled-by': cancelledBy,
    'image-id': id,
    ...(upload !== undefined && placeOf(upload)),
  };
}

function placeOf({ id, imageId, provider, imageName, externalId }: Upload) {
  return {
    'image-id': imageId,
    provider,
    'image-name': imageName,
    'upload-id': id,
    'external-id': externalId ?? null,
  };
}

function endOf({ id, cancelledBy, error }: Build | Upload, others: readonly (Build | Upload)[]): JobEnd {
  if (cancelledBy !== undefined) return 'cancelled';
  if (error !== undefined) return 'failed';
  const [previous] = others
    .filter((other) => other.id !== id && other.endedAt !== undefined && !other.cancelledBy)
    .toSorted((one, other) => (other.endedAt ?? 0) - (one.endedAt ?? 0));
  return previous?.error === undefined ? 'succeeded' : 'recovered';
}

/**
 * Yields the newest ready image of each name in each configured provider, unless its updates are paused, with its age
 * in seconds since its build was requested.
 */
export function* newestImages(
  { providers, diskimages }: Pick<Configuration, 'providers' | 'diskimages'>,
  records: ManagerState,
  now: number,
): Iterable<EventFacts> {
  const paused = new Set(
    diskimages.filter((one) => whyPaused(records, one) !== undefined).map(({ name }) => name),
  );
  const requestedAt = ({ imageId, requestedAt: uploadRequested }: Upload): number =>
    records.builds.get(imageId)?.requestedAt ?? uploadRequested;
  const ready = [...records.uploads.values()].filter(({ state }) => state === 'ready');
  const places = Map.groupBy(ready, ({ provider, imageName }) => JSON.stringify([provider, imageName]));
  for (const { name: provider, entry } of providers) {
    for (const { name: imageName, diskimage, pause } of entry.images) {
      if (diskimage === undefined || pause || entry.pause || paused.has(diskimage)) continue;
      const [newest] = (places.get(JSON.stringify([provider, imageName])) ?? []).toSorted(
        (one, other) => requestedAt(other) - requestedAt(one),
      );
      if (newest === undefined) continue;
      yield {
        id: `image-too-old/${newest.id}`,
        event: 'image-too-old',
        diskimage,
        ...placeOf(newest),
        age: Math.floor((now - requestedAt(newest)) / 1000),
      };
    }
  }
}
