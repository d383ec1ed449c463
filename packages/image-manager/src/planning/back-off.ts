import type { Timing } from '../configuration.ts';
import type { Build, Upload } from '../records.ts';

/** Whether a build or an upload once came to a good end, whatever became of it since. */
export function succeeded(record: Build | Upload): boolean {
  return (
    (record.state === 'ready' || record.state === 'deleting' || record.state === 'deleted') &&
    record.error === undefined
  );
}

/**
 * The failures before which nothing succeeded, of records with the newest first. A build that failed with another
 * configuration ends them too, if the digest of the present one is given.
 */
export function failuresInARow<R extends Build | Upload>(
  records: readonly R[],
  configuration?: string,
): readonly R[] {
  const isOther = (record: R) =>
    configuration !== undefined && 'configuration' in record && record.configuration !== configuration;
  const end = records.findIndex((record) => succeeded(record) || isOther(record));
  return (end === -1 ? records : records.slice(0, end)).filter(({ state }) => state === 'failed');
}

/** Seconds to wait after so many failures in a row, at least one: each further failure doubles them, up to the longest. */
export function pauseAfter(failures: number, { retryDelay, longestRetryDelay }: Timing): number {
  return Math.min(retryDelay * 2 ** (failures - 1), longestRetryDelay);
}

/** When the next try may begin, in milliseconds since 1970: a pause after the last failure's end. `-Infinity` if nothing failed. */
export function retryTime(failures: readonly (Build | Upload)[], timing: Timing): number {
  const [last] = failures;
  if (last === undefined) return -Infinity;
  return (last.endedAt ?? last.requestedAt) + pauseAfter(failures.length, timing) * 1000;
}

/** From how many failures on the pause between two tries grows no more. */
export function failuresThatCount(timing: Timing): number {
  const ratio = timing.longestRetryDelay / timing.retryDelay;
  return ratio > 1 && Number.isFinite(ratio) ? 1 + Math.ceil(Math.log2(ratio)) : 1;
}

/** `the last try failed`, `the last 3 tries failed`. */
export function failuresInWords(count: number): string {
  return count === 1 ? 'the last try failed' : `the last ${count} tries failed`;
}
