import { localTime } from './local-time.ts';
import type { LogRecord } from './log-record.ts';
import type { LogLevel } from './log-settings.ts';

/** Makes a record a line, or several, without the last line's end. */
export type RecordFormat = (record: LogRecord) => string;

/** What Python's logging calls levels. */
export const PYTHON_LEVELS: Readonly<Record<LogLevel, { name: string; number: number }>> = {
  error: { name: 'ERROR', number: 40 },
  warn: { name: 'WARNING', number: 30 },
  info: { name: 'INFO', number: 20 },
  debug: { name: 'DEBUG', number: 10 },
};

/** `2016-05-01 14:02:11,123 INFO nodepool.builder: message`, the layout that nodepool's operators grep. */
export function textFormat(record: LogRecord): string {
  const { name } = PYTHON_LEVELS[record.level];
  return withStack(`${localTime(record.time)} ${name} ${record.logger}: ${record.message}`, record);
}

/** An object a line, for machines. */
export function jsonFormat({ time, level, logger, message, stack, meta }: LogRecord): string {
  return JSON.stringify({ ...meta, timestamp: time.toISOString(), level, logger, message, stack });
}

/** A text with the trace of the record's error after it, if it has one. */
export function withStack(text: string, { stack }: LogRecord): string {
  return stack === undefined ? text : `${text}\n${stack}`;
}
