import { existsSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { SizeRotation, TimeRotation } from './log-settings.ts';
import { asUtc } from './record-format.ts';

/** Decides when a log file is rotated, and renames it. */
export interface Rotation {
  /**
   * @param size current size in bytes
   * @param added size of the next record in bytes
   */
  isDue(size: number, added: number): boolean;
  /** Renames the file and deletes the oldest. */
  rotate(): void;
}

/** Rotates by size. */
export function sizeRotation(path: string, { maxBytes, backups }: SizeRotation): Rotation {
  return {
    isDue: (size, added) => size + added >= maxBytes && size > 0,
    rotate: () => {
      for (let number = backups; number > 0; number -= 1) {
        const younger = number === 1 ? path : `${path}.${number - 1}`;
        if (existsSync(younger)) renameSync(younger, `${path}.${number}`);
      }
    },
  };
}

const DAY = 86_400_000;

/** Length of a unit in milliseconds, and of the start time in the name of an old file in characters. */
const UNITS: Readonly<Record<string, { length: number; suffixLength: number }>> = {
  S: { length: 1_000, suffixLength: '2016-11-18_14-30-00'.length },
  M: { length: 60_000, suffixLength: '2016-11-18_14-30'.length },
  H: { length: 3_600_000, suffixLength: '2016-11-18_14'.length },
};
const DAYS = { length: DAY, suffixLength: '2016-11-18'.length };

/**
 * Rotates by time. The first interval starts at the last write to the file, so that a restart does not extend it.
 *
 * @param now wall clock: milliseconds since 1970
 */
export function timeRotation(path: string, settings: TimeRotation, now: () => number = Date.now): Rotation {
  const { interval, backups } = settings;
  const { length, suffixLength } = UNITS[settings.unit] ?? DAYS;
  let next = endOfInterval(settings, length, statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? now());
  return {
    isDue: () => now() >= next,
    rotate: () => {
      // Computed in the calendar, as in Python, because the day on which summer time begins has 23 hours.
      const start = new Date(calendarOf(next, settings).getTime() - length * interval).toISOString();
      const suffix = start.slice(0, suffixLength).replace('T', '_').replaceAll(':', '-');
      if (existsSync(path)) renameSync(path, `${path}.${suffix}`);
      if (backups > 0) removeOldest(path, suffixLength, backups);
      next = endOfInterval(settings, length, now());
    },
  };
}

function endOfInterval(settings: TimeRotation, length: number, time: number): number {
  const { unit, interval, utc } = settings;
  if (unit !== 'MIDNIGHT' && !unit.startsWith('W')) return time + length * interval;
  const calendar = calendarOf(time, settings);
  // Python's W0 is Monday. The week ends at midnight after that day.
  const daysUntil = (Number(unit.slice(1)) + 8 - calendar.getUTCDay()) % 7;
  const days = unit === 'MIDNIGHT' ? interval : daysUntil + 1;
  const midnight = [calendar.getUTCFullYear(), calendar.getUTCMonth(), calendar.getUTCDate() + days] as const;
  return utc ? Date.UTC(...midnight) : new Date(...midnight).getTime();
}

/** A time whose UTC parts are in the time zone of the settings. */
function calendarOf(time: number, { utc }: TimeRotation): Date {
  return utc ? new Date(time) : asUtc(new Date(time));
}

function removeOldest(path: string, suffixLength: number, backups: number): void {
  const [directory, prefix] = [dirname(path), `${basename(path)}.`];
  const old = readdirSync(directory)
    .filter((name) => name.startsWith(prefix) && name.length === prefix.length + suffixLength)
    .filter((name) => /^\d{4}-\d\d-\d\d(?:_\d\d(?:-\d\d)*)?$/.test(name.slice(prefix.length)))
    .toSorted();
  for (const name of old.slice(0, -backups)) rmSync(join(directory, name), { force: true });
}
