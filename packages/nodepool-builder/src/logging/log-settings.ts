import type { LocatedDiagnostic } from '../yaml/diagnostic.ts';
import type { LogLevel, RecordFormat } from './record-format.ts';

/** Minimum level of a record; `silent` discards all records. */
export type LogThreshold = LogLevel | 'silent';

/** Settings of the log: loggers by name. The root logger, which always exists, has the empty name. */
export type LogSettings = ReadonlyMap<string, LoggerSettings>;

/** Settings from a file, with warnings about unsupported parts. */
export interface ReadLogSettings {
  readonly settings: LogSettings;
  readonly warnings: readonly LocatedDiagnostic[];
}

/** Settings of a logger. They also apply to the names below it: `nodepool.image` applies to `nodepool.image.build`. */
export interface LoggerSettings {
  /** Threshold of the logger. Default: the level of the next logger above. */
  readonly level?: LogThreshold;
  /** Outputs for the records of this logger and of the loggers below it. */
  readonly outputs: readonly LogOutput[];
  /** True if records also go to the outputs of the loggers above. */
  readonly propagate: boolean;
}

/** A target with format and level. */
export interface LogOutput {
  readonly target: LogTarget;
  readonly format: RecordFormat;
  /** Threshold of the handler. Default: all records that pass the loggers. */
  readonly level?: LogThreshold;
}

/** A stream of this process, or a file. */
export type LogTarget = { readonly type: 'stderr' | 'stdout' } | LogFileTarget;

/** A file, created if necessary. */
export interface LogFileTarget {
  readonly type: 'file';
  /** Absolute path. */
  readonly filename: string;
  /** True if each start empties the file. Default: each start appends. */
  readonly truncate?: boolean;
  /** True if the file is reopened after logrotate has moved it. */
  readonly watched?: boolean;
  readonly rotation?: SizeRotation | TimeRotation;
}

/** Rotates a file before it reaches a size, like Python's RotatingFileHandler. `<file>.1` is the newest old file. */
export interface SizeRotation {
  readonly by: 'size';
  readonly maxBytes: number;
  /** Number of old files to keep. */
  readonly backups: number;
}

/**
 * Rotates a file at intervals, like Python's TimedRotatingFileHandler. The name of an old file contains its start time,
 * `<file>.2016-11-18_14`.
 */
export interface TimeRotation {
  readonly by: 'time';
  readonly unit: TimeUnit;
  /** Number of units; ignored for weekdays. */
  readonly interval: number;
  /** Number of old files to keep; 0 keeps all. */
  readonly backups: number;
  /** True to use UTC instead of local time. */
  readonly utc: boolean;
}

/** Seconds, minutes, hours or days since the start, days that end at midnight, or weeks that end with a weekday. */
export type TimeUnit = 'S' | 'M' | 'H' | 'D' | 'MIDNIGHT' | `W${0 | 1 | 2 | 3 | 4 | 5 | 6}`;
