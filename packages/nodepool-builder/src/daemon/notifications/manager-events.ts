import { type Build, type ManagerState, type Upload, whyPaused } from '@nodepool-builder/image-manager';
import type { Configuration } from '../../configuration/configuration.ts';
import type { EventKind } from '../../configuration/event-kinds.ts';
import type { EventFacts } from './event.ts';

/** The event of a build or an upload that has ended. */
export function eventOfEnd(record: Build | Upload, { builds, uploads }: ManagerState): EventFacts {
  if (!('provider' in record)) {
    const others = [...builds.values()].filter(({ diskimage }) => diskimage === record.diskimage);
    return { ...factsOf('build', record, others), 'image-id': record.id };
  }
  const { provider, imageName, imageId, id, externalId } = record;
  const others = [...uploads.values()].filter(
    (other) => other.provider === provider && other.imageName === imageName,
  );
  return {
    ...factsOf('upload', record, others),
    'image-id': imageId,
    provider,
    'image-name': imageName,
    'upload-id': id,
    'external-id': externalId ?? null,
  };
}

type Work = Pick<Build | Upload, 'id' | 'diskimage' | 'endedAt' | 'error' | 'cancelledBy'>;

function factsOf(
  what: 'build' | 'upload',
  work: Work,
  others: readonly Work[],
): Omit<EventFacts, 'image-id'> {
  const { id, diskimage, endedAt = Date.now(), error, cancelledBy } = work;
  const end = endOf(work, others);
  return {
    id: `${what}/${id}/${end}`,
    event: `${what}-${end}` satisfies EventKind,
    time: new Date(endedAt).toISOString(),
    diskimage,
    error: error ?? null,
    'cancelled-by': cancelledBy ?? null,
  };
}

function endOf(work: Work, others: readonly Work[]): 'cancelled' | 'failed' | 'recovered' | 'succeeded' {
  if (work.cancelledBy !== undefined) return 'cancelled';
  if (work.error !== undefined) return 'failed';
  const [previous] = others
    .filter(({ id, endedAt, cancelledBy }) => id !== work.id && endedAt !== undefined && !cancelledBy)
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
): Iterable<EventFacts & { readonly age: number }> {
  const { builds, uploads } = records;
  const paused = new Set(
    diskimages.filter((one) => whyPaused(records, one) !== undefined).map(({ name }) => name),
  );
  const requestedAt = ({ imageId, requestedAt: uploadRequested }: Upload): number =>
    builds.get(imageId)?.requestedAt ?? uploadRequested;
  const ready = [...uploads.values()].filter(({ state }) => state === 'ready');
  const places = Map.groupBy(ready, ({ provider, imageName }) => JSON.stringify([provider, imageName]));
  for (const { name: provider, entry } of providers) {
    for (const { name: imageName, diskimage, pause } of entry.images) {
      if (diskimage === undefined || pause || entry.pause || paused.has(diskimage)) continue;
      const [newest] = (places.get(JSON.stringify([provider, imageName])) ?? []).toSorted(
        (one, other) => requestedAt(other) - requestedAt(one),
      );
      if (newest === undefined) continue;
      const age = Math.floor((now - requestedAt(newest)) / 1000);
      yield {
        id: `image-too-old/${newest.id}`,
        event: 'image-too-old',
        diskimage,
        'image-id': newest.imageId,
        provider,
        'image-name': imageName,
        'upload-id': newest.id,
        'external-id': newest.externalId ?? null,
        age,
      };
    }
  }
}
