import type { Build, ManagerState, Upload } from '../records.ts';

/** Milliseconds by which the clocks of two hosts may differ. */
const TOLERANCE = 60_000;

/** Records that were made while a clock ran ahead. */
export interface FutureDates {
  readonly builds: readonly Build[];
  readonly uploads: readonly Upload[];
}

/**
 * Records with dates in the future, with these dates replaced by the present: counted from a date in the future, nothing
 * would be due by age, and no pause would end, until the clock gets there.
 *
 * @param now in milliseconds since 1970
 */
export function correctFutureDates({ builds, uploads }: ManagerState, now: number): FutureDates {
  const correct = <T extends Build | Upload>(records: ReadonlyMap<string, T>): readonly T[] =>
    [...records.values()]
      .filter(({ requestedAt, endedAt = 0 }) => Math.max(requestedAt, endedAt) > now + TOLERANCE)
      .map((record) => ({
        ...record,
        requestedAt: Math.min(record.requestedAt, now),
        ...(record.endedAt !== undefined && { endedAt: Math.min(record.endedAt, now) }),
      }));
  return { builds: correct(builds), uploads: correct(uploads) };
}
