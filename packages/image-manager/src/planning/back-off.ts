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

/**
 * When the next try may begin, in milliseconds since 1970: after the last failure's end, by a pause that doubles
 * with each further failure. `-Infinity` if nothing failed.
 */
export function retryTime(failures: readonly (Build | Upload)[], timing: Timing): number {
  const [last] = failures;
  if (last === undefined) return -Infinity;
  const pause = Math.min(timing.longestRetryDelay, timing.retryDelay * 2 ** (failures.length - 1));
  return (last.endedAt ?? last.requestedAt) + pause * 1000;
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
