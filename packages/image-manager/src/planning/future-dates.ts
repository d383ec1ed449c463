import type { Build, ManagerState, Upload } from '../records.ts';

/** Tolerated difference between the clocks of two hosts, in milliseconds. */
const TOLERANCE = 60_000;

/** Records that were written while a clock was ahead. */
export interface FutureDates {
  readonly builds: readonly Build[];
  readonly uploads: readonly Upload[];
}

/**
 * Replaces dates in the future by the present. Until such a date, nothing would be due by age, and no pause would end.
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
