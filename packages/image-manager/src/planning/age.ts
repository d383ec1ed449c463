import type { Build, Upload } from '../records.ts';

/** What has a place in time. */
export type Dated = Pick<Build, 'id' | 'requestedAt'>;

/** Orders what was asked for last first. */
export function newestFirst(one: Dated, other: Dated): number {
  return other.requestedAt - one.requestedAt || byText(other.id, one.id);
}

/** An upload is as new as its build. */
export function buildDateOf(upload: Upload, builds: ReadonlyMap<string, Build>): Dated {
  return builds.get(upload.imageId) ?? { id: upload.imageId, requestedAt: upload.requestedAt };
}

/** Ids of one disk image hold numbers of equal length: by text they are in the order of their making. */
function byText(one: string, other: string): number {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}
