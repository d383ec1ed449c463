/** The parts of a date and time. */
export interface CalendarTime {
  readonly year: number;
  /** 1 is January. */
  readonly month: number;
  readonly day: number;
  readonly hour: number;
  readonly minute: number;
  readonly second: number;
  /** 0 is Sunday. */
  readonly weekday: number;
}

/** Converts a time to the calendar, in local time or UTC. */
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

/** Formats a number with at least so many digits. */
export function digits(value: number, count: number): string {
  return String(value).padStart(count, '0');
}

/** Formats a local time as Python's logging does: `2016-05-01 14:02:11,123`. */
export function localTime(time: Date): string {
  const { year, month, day, hour, minute, second } = calendarTime(time);
  const date = [digits(year, 4), digits(month, 2), digits(day, 2)].join('-');
  const clock = [hour, minute, second].map((value) => digits(value, 2)).join(':');
  return `${date} ${clock},${digits(time.getMilliseconds(), 3)}`;
}
