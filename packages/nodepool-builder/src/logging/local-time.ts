/** The parts of a date and time, as numbers. */
export interface CalendarTime {
  readonly year: number;
  /** From 1. */
  readonly month: number;
  readonly day: number;
  readonly hour: number;
  readonly minute: number;
  readonly second: number;
  /** From 0, which is Sunday. */
  readonly weekday: number;
}

/** A moment by the calendar of this host, or of UTC. */
export function calendarTime(time: Date, utc = false): CalendarTime {
  return utc
    ? {
        year: time.getUTCFullYear(),
        month: time.getUTCMonth() + 1,
        day: time.getUTCDate(),
        hour: time.getUTCHours(),
        minute: time.getUTCMinutes(),
        second: time.getUTCSeconds(),
        weekday: time.getUTCDay(),
      }
    : {
        year: time.getFullYear(),
        month: time.getMonth() + 1,
        day: time.getDate(),
        hour: time.getHours(),
        minute: time.getMinutes(),
        second: time.getSeconds(),
        weekday: time.getDay(),
      };
}

/** A number with at least so many digits. */
export function digits(value: number, count: number): string {
  return String(value).padStart(count, '0');
}

/** `2016-05-01 14:02:11,123`, as Python's logging writes the local time. */
export function localTime(time: Date): string {
  const { year, month, day, hour, minute, second } = calendarTime(time);
  const date = [digits(year, 4), digits(month, 2), digits(day, 2)].join('-');
  const clock = [hour, minute, second].map((value) => digits(value, 2)).join(':');
  return `${date} ${clock},${digits(time.getMilliseconds(), 3)}`;
}
