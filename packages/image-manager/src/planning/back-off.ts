import type { Timing } from '../configuration.ts';
import type { Build, Upload } from '../records.ts';

/** Returns whether a build or upload once succeeded, even if it has been deleted since. */
export function succeeded(record: Build | Upload): boolean {
  return ['ready', 'missing', 'deleting', 'deleted'].includes(record.state) && record.error === undefined;
}

/**
 * Returns the failures since the last success. If the digest of the current configuration is given, a build with
 * another configuration also ends the series.
 *
 * @param records newest first
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

/** Seconds to wait after one or more consecutive failures. Each failure doubles them, up to the maximum pause. */
export function pauseAfter(failures: number, { retryDelay, maxRetryDelay }: Timing): number {
  return Math.min(retryDelay * 2 ** (failures - 1), maxRetryDelay);
}

/** Time of the next attempt, in milliseconds since 1970; `-Infinity` without failures. */
export function retryTime(failures: readonly (Build | Upload)[], timing: Timing): number {
  const [last] = failures;
  if (last === undefined) return -Infinity;
  return (last.endedAt ?? last.requestedAt) + pauseAfter(failures.length, timing) * 1000;
}

/** Number of failures after which the pause no longer grows. */
export function failuresThatCount(timing: Timing): number {
  const ratio = timing.maxRetryDelay / timing.retryDelay;
  return ratio > 1 && Number.isFinite(ratio) ? 1 + Math.ceil(Math.log2(ratio)) : 1;
}

/** Formats failures with the error of the newest, which is first: `the last 3 attempts failed (no space left)`. */
export function failuresInWords(failures: readonly (Build | Upload)[]): string {
  const { length } = failures;
  const { error } = failures[0] ?? {};
  const attempts = length === 1 ? 'the last attempt' : `the last ${length} attempts`;
  return `${attempts} failed${error === undefined ? '' : ` (${error})`}`;
}
