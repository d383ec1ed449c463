import type { LogLevel } from './log-settings.ts';

/** One thing that was logged. */
export interface LogRecord {
  readonly time: Date;
  readonly level: LogLevel;
  /** The logger's name. */
  readonly logger: string;
  readonly message: string;
  /** Of an error that is no expected one. */
  readonly stack?: string;
  /** What was given besides the message. */
  readonly meta: Readonly<Record<string, unknown>>;
}
