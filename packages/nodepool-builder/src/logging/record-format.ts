/** The levels of winston that this program uses, most severe first. */
export const LOG_LEVELS = ['error', 'warn', 'info', 'debug'] as const;

/** The severity of a record. */
export type LogLevel = (typeof LOG_LEVELS)[number];

/** A log record. */
export interface LogRecord {
  readonly time: Date;
  readonly level: LogLevel;
  /** The logger's name. */
  readonly logger: string;
  readonly message: string;
  /** Stack trace of an unexpected error. */
  readonly stack?: string;
  /** Data that was logged with the message. */
  readonly meta: Readonly<Record<string, unknown>>;
}

/** Formats a record as one or more lines, without the last line break. */
export type RecordFormat = (record: LogRecord) => string;

/** The levels of Python's logging. */
export const PYTHON_LEVELS: Readonly<Record<LogLevel, { name: string; number: number }>> = {
  error: { name: 'ERROR', number: 40 },
  warn: { name: 'WARNING', number: 30 },
  info: { name: 'INFO', number: 20 },
  debug: { name: 'DEBUG', number: 10 },
};

/** Formats a record as `2016-05-01 14:02:11,123 INFO nodepool.builder: message`, as nodepool did. */
export function textFormat(record: LogRecord): string {
  const { name } = PYTHON_LEVELS[record.level];
  return withStack(`${localTime(record.time)} ${name} ${record.logger}: ${record.message}`, record);
}

/** Formats a record for the journal, which stores time and level as fields. */
export function journalFormat(record: LogRecord): string {
  return withStack(`${record.logger}: ${record.message}`, record);
}

/** Formats a record as one line of JSON. */
export function jsonFormat({ time, level, logger, message, stack, meta }: LogRecord): string {
  return JSON.stringify({ ...meta, timestamp: time.toISOString(), level, logger, message, stack });
}

/** Appends the record's stack trace, if it has one. */
export function withStack(text: string, { stack }: LogRecord): string {
  return stack === undefined ? text : `${text}\n${stack}`;
}

/** Formats a local time like Python's logging: `2016-05-01 14:02:11,123`. */
export function localTime(time: Date): string {
  return asUtc(time).toISOString().slice(0, -1).replace('T', ' ').replace('.', ',');
}

/** Shifts a time by the local time zone: the UTC parts of the result are the local parts of the time. */
export function asUtc(time: Date): Date {
  return new Date(time.getTime() - time.getTimezoneOffset() * 60_000);
}
