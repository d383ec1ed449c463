import { readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { type CalendarTime, calendarTime, digits } from '../local-time.ts';
import type { TimeRotationSettings, TimeUnit } from '../log-settings.ts';

const DAY = 86_400_000;

interface Unit {
  /** Length in milliseconds. */
  readonly length: number;
  /** Parts of the time in the name of an old file. */
  readonly suffix: readonly (keyof CalendarTime)[];
}

const UNITS: Readonly<Record<'S' | 'M' | 'H' | 'D', Unit>> = {
  S: { length: 1_000, suffix: ['hour', 'minute', 'second'] },
  M: { length: 60_000, suffix: ['hour', 'minute'] },
  H: { length: 3_600_000, suffix: ['hour'] },
  D: { length: DAY, suffix: [] },
};

/**
 * Rotates by time, as Python's TimedRotatingFileHandler does. The first interval starts at the last write to the
 * file, so that a restart does not extend it. An old file has its start time in its name: `<file>.2016-11-18_14`.
 */
export class TimeRotation {
  readonly #path: string;
  readonly #settings: TimeRotationSettings;
  readonly #unit: Unit;
  readonly #now: () => number;
  /** Start of the next file, in milliseconds since 1970. */
  #next: number;

  /** @param now wall clock: milliseconds since 1970 */
  constructor(path: string, settings: TimeRotationSettings, now: () => number = Date.now) {
    this.#path = path;
    this.#settings = settings;
    this.#unit = UNITS[isCalendarUnit(settings.unit) ? 'D' : settings.unit];
    this.#now = now;
    this.#next = this.#after(statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? now());
  }

  isDue(): boolean {
    return this.#now() >= this.#next;
  }

  rotate(): void {
    const started = this.#next - this.#unit.length * this.#settings.interval;
    renameSync(this.#path, `${this.#path}.${this.#suffix(new Date(started))}`);
    this.#removeOldest();
    this.#next = this.#after(this.#now());
  }

  #after(time: number): number {
    const { unit, interval } = this.#settings;
    if (!isCalendarUnit(unit)) return time + this.#unit.length * interval;
    const midnight = this.#midnightAfter(time, interval);
    if (unit === 'MIDNIGHT') return midnight;
    // Python's W0 is Monday. The week ends at the midnight after that day.
    const last = (Number(unit.slice(1)) + 1) % 7;
    const { weekday } = calendarTime(new Date(time), this.#settings.utc);
    return this.#midnightAfter(time, ((last - weekday + 7) % 7) + 1);
  }

  #midnightAfter(time: number, days: number): number {
    const { year, month, day } = calendarTime(new Date(time), this.#settings.utc);
    return this.#settings.utc
      ? Date.UTC(year, month - 1, day + days)
      : new Date(year, month - 1, day + days).getTime();
  }

  #suffix(time: Date): string {
    const calendar = calendarTime(time, this.#settings.utc);
    const date = [digits(calendar.year, 4), digits(calendar.month, 2), digits(calendar.day, 2)].join('-');
    const clock = this.#unit.suffix.map((part) => digits(calendar[part], 2)).join('-');
    return clock === '' ? date : `${date}_${clock}`;
  }

  #removeOldest(): void {
    const { backups } = this.#settings;
    if (backups === 0) return;
    const [directory, prefix] = [dirname(this.#path), `${basename(this.#path)}.`];
    const { length } = this.#suffix(new Date());
    const old = readdirSync(directory)
      .filter((name) => name.startsWith(prefix) && isSuffix(name.slice(prefix.length), length))
      .toSorted();
    for (const name of old.slice(0, -backups)) rmSync(join(directory, name), { force: true });
  }
}

function isSuffix(text: string, length: number): boolean {
  return text.length === length && /^\d{4}-\d\d-\d\d(?:_\d\d(?:-\d\d)*)?$/.test(text);
}

function isCalendarUnit(unit: TimeUnit): unit is Exclude<TimeUnit, 'S' | 'M' | 'H' | 'D'> {
  return unit === 'MIDNIGHT' || unit.startsWith('W');
}
