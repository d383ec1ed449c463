import { localTime } from '../local-time.ts';
import { type LogRecord, PYTHON_LEVELS, type RecordFormat, withStack } from '../record-format.ts';
import { strftime, unknownDirective } from './strftime.ts';

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

/** Returns why a format is not supported; undefined if it is. */
export function formatError(format: string, datefmt: string): string | undefined {
  for (const [directive, field, , , , conversion = ''] of format.matchAll(DIRECTIVE)) {
    if (field !== undefined && !(Object.hasOwn(FIELDS, field) && Object.hasOwn(CONVERSIONS, conversion))) {
      return `${directive} is not supported`;
    }
  }
  if (format.replaceAll(DIRECTIVE, '').includes('%')) return 'a "%" starts no directive';
  const unknown = unknownDirective(datefmt);
  return unknown === undefined ? undefined : `${unknown} in datefmt is not supported`;
}

/** Makes a format from Python's `%` notation, such as `%(asctime)s %(levelname)-8s %(name)s: %(message)s`. */
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
