import { type CalendarTime, calendarTime, digits } from '../local-time.ts';

const WEEKDAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];
const MONTHS = [
  'January',
  'February',
  'March',
  'April',
  'May',
  'June',
  'July',
  'August',
  'September',
  'October',
  'November',
  'December',
];

/** Directives by letter, in the C locale. */
const DIRECTIVES: Readonly<Record<string, (calendar: CalendarTime, time: Date) => string>> = {
  Y: ({ year }) => digits(year, 4),
  y: ({ year }) => digits(year % 100, 2),
  m: ({ month }) => digits(month, 2),
  d: ({ day }) => digits(day, 2),
  H: ({ hour }) => digits(hour, 2),
  I: ({ hour }) => digits(hour % 12 || 12, 2),
  p: ({ hour }) => (hour < 12 ? 'AM' : 'PM'),
  M: ({ minute }) => digits(minute, 2),
  S: ({ second }) => digits(second, 2),
  j: ({ year, month, day }) =>
    digits((Date.UTC(year, month - 1, day) - Date.UTC(year, 0, 0)) / 86_400_000, 3),
  A: ({ weekday }) => WEEKDAYS[weekday] ?? '',
  a: ({ weekday }) => (WEEKDAYS[weekday] ?? '').slice(0, 3),
  B: ({ month }) => MONTHS[month - 1] ?? '',
  b: ({ month }) => (MONTHS[month - 1] ?? '').slice(0, 3),
  F: (calendar, time) => ['Y', 'm', 'd'].map((letter) => DIRECTIVES[letter]?.(calendar, time)).join('-'),
  T: (calendar, time) => ['H', 'M', 'S'].map((letter) => DIRECTIVES[letter]?.(calendar, time)).join(':'),
  s: (_calendar, time) => String(Math.floor(time.getTime() / 1000)),
  z: (_calendar, time) => {
    const minutes = -time.getTimezoneOffset();
    const absolute = Math.abs(minutes);
    return `${minutes < 0 ? '-' : '+'}${digits(Math.floor(absolute / 60), 2)}${digits(absolute % 60, 2)}`;
  },
  '%': () => '%',
};

/** Returns the first unknown directive of a format; undefined if all are known. */
export function unknownDirective(format: string): string | undefined {
  return [...format.matchAll(/%(.?)/gs)].find(([, letter = '']) => !Object.hasOwn(DIRECTIVES, letter))?.[0];
}

/** Formats a local time as C's `strftime` does. Unknown directives stay as they are. */
export function strftime(format: string, time: Date): string {
  const calendar = calendarTime(time);
  return format.replaceAll(/%(.)/gs, (whole, letter: string) =>
    Object.hasOwn(DIRECTIVES, letter) ? (DIRECTIVES[letter]?.(calendar, time) ?? whole) : whole,
  );
}
