import {
  asUtc,
  type LogRecord,
  localTime,
  PYTHON_LEVELS,
  type RecordFormat,
  withStack,
} from '../record-format.ts';

/** Supported fields of Python's log records. */
const FIELDS: Readonly<Record<string, (record: LogRecord, datefmt: string) => string | number>> = {
  asctime: ({ time }, datefmt) => (datefmt === '' ? localTime(time) : strftime(datefmt, time)),
  created: ({ time }) => time.getTime() / 1000,
  levelname: ({ level }) => PYTHON_LEVELS[level].name,
  levelno: ({ level }) => PYTHON_LEVELS[level].number,
  message: ({ message }) => message,
  msecs: ({ time }) => time.getMilliseconds(),
  name: ({ logger }) => logger,
  process: () => process.pid,
  processName: () => 'MainProcess',
  threadName: () => 'MainThread',
};

const DIRECTIVE = /%(?:%|\((\w+)\)([-0]*)((?:[1-9]\d*)?)(?:\.(\d+))?([a-zA-Z]))/g;

/** Formats a value, by the conversion of a directive. */
const CONVERSIONS: Readonly<
  Record<string, (value: string | number, precision: number | undefined) => string>
> = {
  s: (value, precision) => String(value).slice(0, precision),
  d: (value) => String(Math.trunc(Number(value))),
  f: (value, precision = 6) => Number(value).toFixed(precision),
};

/** Directives of `strftime` by letter, in the C locale; `iso` has the local time as `2016-05-01T04:02:11.007Z`. */
const TIME_DIRECTIVES: Readonly<Record<string, (iso: string, time: Date) => string>> = {
  Y: (iso) => iso.slice(0, 4),
  y: (iso) => iso.slice(2, 4),
  m: (iso) => iso.slice(5, 7),
  d: (iso) => iso.slice(8, 10),
  H: (iso) => iso.slice(11, 13),
  I: (_iso, time) => String(time.getHours() % 12 || 12).padStart(2, '0'),
  p: (_iso, time) => (time.getHours() < 12 ? 'AM' : 'PM'),
  M: (iso) => iso.slice(14, 16),
  S: (iso) => iso.slice(17, 19),
  j: (iso) => {
    const sinceNewYear = Date.parse(iso.slice(0, 10)) - Date.parse(iso.slice(0, 4));
    return String(sinceNewYear / 86_400_000 + 1).padStart(3, '0');
  },
  A: (_iso, time) => time.toLocaleDateString('en-US', { weekday: 'long' }),
  a: (_iso, time) => time.toLocaleDateString('en-US', { weekday: 'short' }),
  B: (_iso, time) => time.toLocaleDateString('en-US', { month: 'long' }),
  b: (_iso, time) => time.toLocaleDateString('en-US', { month: 'short' }),
  F: (iso) => iso.slice(0, 10),
  T: (iso) => iso.slice(11, 19),
  s: (_iso, time) => String(Math.floor(time.getTime() / 1000)),
  z: (_iso, time) => {
    const minutes = -time.getTimezoneOffset();
    const [hour, minute] = [Math.floor(Math.abs(minutes) / 60), Math.abs(minutes) % 60];
    return `${minutes < 0 ? '-' : '+'}${String(hour * 100 + minute).padStart(4, '0')}`;
  },
  '%': () => '%',
};

/** Returns why a format is not supported; undefined if it is supported. */
export function formatError(format: string, datefmt: string): string | undefined {
  for (const [directive, field, , , , conversion = ''] of format.matchAll(DIRECTIVE)) {
    if (field !== undefined && !(Object.hasOwn(FIELDS, field) && Object.hasOwn(CONVERSIONS, conversion))) {
      return `${directive} is not supported`;
    }
  }
  if (format.replaceAll(DIRECTIVE, '').includes('%')) return 'a "%" does not start a directive';
  for (const [directive, letter = ''] of datefmt.matchAll(/%(.?)/gs)) {
    if (!Object.hasOwn(TIME_DIRECTIVES, letter)) return `${directive} in datefmt is not supported`;
  }
  return undefined;
}

/**
 * Makes a format from Python's `%` notation, such as `%(asctime)s %(levelname)-8s %(name)s: %(message)s`. Neither it
 * nor `datefmt` has a {@link formatError}.
 */
export function percentFormat(format: string, datefmt: string): RecordFormat {
  return (record) =>
    withStack(
      format.replaceAll(DIRECTIVE, (directive, ...groups: (string | undefined)[]) => {
        const [field = '', flags = '', width = '', precision, conversion = ''] = groups;
        const value = FIELDS[field]?.(record, datefmt);
        const convert = CONVERSIONS[conversion];
        if (value === undefined || convert === undefined) return directive === '%%' ? '%' : directive;
        const written = convert(value, precision === undefined ? undefined : Number(precision));
        if (flags.includes('-')) return written.padEnd(Number(width));
        return written.padStart(Number(width), flags.includes('0') && conversion !== 's' ? '0' : ' ');
      }),
      record,
    );
}

/** Formats a local time in the C locale. Unknown directives are unchanged. */
function strftime(format: string, time: Date): string {
  const iso = asUtc(time).toISOString();
  return format.replaceAll(
    /%(.)/gs,
    (whole, letter: string) => TIME_DIRECTIVES[letter]?.(iso, time) ?? whole,
  );
}
