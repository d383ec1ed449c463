import { byBuild } from '@nodepool-builder/image-builder/module-kit';
import type { Build, Upload } from '../records.ts';

/** A record's date, with the id that decides if dates are equal. */
export type Dated = Pick<Build, 'id' | 'requestedAt'>;

/**
 * Orders records newest first: by the store's numbers, or by date if a record has none. A clock that was set back
 * therefore does not change the order.
 *
 * @param all the records to compare
 */
export function newestFirst<T>(all: readonly T[], dateOf: (each: T) => Dated): (one: T, other: T) => number {
  const dates = new Map(all.map((each) => [each, dateOf(each)]));
  const describe = (each: T) => ({ imageId: dates.get(each)?.id, builtAt: dates.get(each)?.requestedAt });
  const compare = byBuild(all, describe, Infinity);
  const idOf = (each: T): string => dates.get(each)?.id ?? '';
  return (one, other) => compare(one, other) || byText(idOf(other), idOf(one));
}

/** Returns the date of an upload's build. */
export function buildDateOf(upload: Upload, builds: ReadonlyMap<string, Build>): Dated {
  return builds.get(upload.imageId) ?? { id: upload.imageId, requestedAt: upload.requestedAt };
}

function byText(one: string, other: string): number {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}
