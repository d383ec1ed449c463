import type { Fault } from '../configuration/fault.ts';
import type { RecordFormat } from './record-format.ts';

/** winston's levels, as far as this program writes them, the gravest first. */
export const LOG_LEVELS = ['error', 'warn', 'info', 'debug'] as const;

/** How grave a record is. */
export type LogLevel = (typeof LOG_LEVELS)[number];

/** The least grave level that passes; `silent` lets nothing pass. */
export type LogThreshold = LogLevel | 'silent';

/** Which records go where. */
export interface LogSettings {
  /** By name; the root's is the empty text, and it is always there. */
  readonly loggers: ReadonlyMap<string, LoggerSettings>;
}

/** Settings as they were read from a file, and what in it cannot be followed. */
export interface ReadLogSettings {
  readonly settings: LogSettings;
  readonly warnings: readonly Fault[];
}

/** A logger, which also covers the names below it: `nodepool.image` covers `nodepool.image.build`. */
export interface LoggerSettings {
  /** Default: that of the next logger above. */
  readonly level?: LogThreshold;
  /** Where records of this logger and of those below it go. */
  readonly outputs: readonly LogOutput[];
  /** Whether records go to the outputs of the loggers above, too. */
  readonly propagate: boolean;
}

/** One place where records go. */
export interface LogOutput {
  readonly target: LogTarget;
  readonly format: RecordFormat;
  /** Default: whatever the loggers let pass. */
  readonly level?: LogThreshold;
}

/** A stream of this process, or a file. */
export type LogTarget = { readonly type: 'stderr' | 'stdout' } | LogFileTarget;

/** A file; it is made if it is not there. */
export interface LogFileTarget {
  readonly type: 'file';
  /** Absolute. */
  readonly filename: string;
  /** Whether it begins anew with each start. Default: it is continued. */
  readonly truncate?: boolean;
  /** Whether it is opened again when logrotate has moved it away. */
  readonly watched?: boolean;
  readonly rotation?: SizeRotationSettings | TimeRotationSettings;
}

/** A new file is begun before it has so many bytes; `<file>.1` is the newest of the old ones. */
export interface SizeRotationSettings {
  readonly by: 'size';
  readonly maxBytes: number;
  /** How many old ones are kept. */
  readonly backups: number;
}

/** A new file is begun at intervals; an old one has the time of its beginning in its name. */
export interface TimeRotationSettings {
  readonly by: 'time';
  readonly unit: TimeUnit;
  /** In units; weekdays know but one. */
  readonly interval: number;
  /** How many old ones are kept; 0: all. */
  readonly backups: number;
  /** Whether days and names go by UTC, not by local time. */
  readonly utc: boolean;
}

/** Seconds, minutes, hours, days since the beginning; days that end at midnight; weeks that end with a weekday. */
export type TimeUnit = 'S' | 'M' | 'H' | 'D' | 'MIDNIGHT' | `W${0 | 1 | 2 | 3 | 4 | 5 | 6}`;
