import type { Logger } from '@nodepool-builder/image-builder';
import { createLogger, format, transports } from 'winston';
import { isJournal, prioritized } from '../terms/journal.ts';
import { oneLine, printable } from '../terms/printable.ts';
import { LogFile, openTarget } from './log-file.ts';
import type { LogOutput, LogSettings, LogThreshold } from './log-settings.ts';
import { journalFormat, LOG_LEVELS, type LogLevel, type LogRecord, textFormat } from './record-format.ts';

/** Winston's copy of a record. A transport writes the text under {@link MESSAGE}. */
type Info = Parameters<ReturnType<typeof format.json>['transform']>[0];

/** Key of the formatted text. */
const MESSAGE = Symbol.for('message');

/** The log of a process. */
export interface Logging {
  /** Returns a logger by its nodepool name, such as `nodepool.image.build.debian`. */
  logger(name: string): Logger;
  /** Reopens the log files after logrotate has moved them. */
  reopen(): void;
  /** Writes all pending records. */
  close(): Promise<void>;
}

/**
 * Opens the log.
 *
 * @throws ConfigurationError for a file that cannot be written
 */
export function openLogging(settings: LogSettings): Logging {
  const outputs = [...new Set([...settings.values()].flatMap((logger) => logger.outputs))];
  const route = routesOf(settings);
  const targets = outputs.map((output) => ({ output, stream: openTarget(output.target) }));
  const root = createLogger({
    level: 'debug',
    format: format.combine(format.errors({ stack: true }), TIMED),
    transports: targets.map(
      ({ output, stream }) => new transports.Stream({ stream, format: formatOf(output, route) }),
    ),
    silent: outputs.length === 0,
  });
  return {
    logger: (name) => root.child({ logger: name }),
    reopen: () => {
      for (const { stream } of targets) if (stream instanceof LogFile) stream.reopen();
    },
    close: async () => {
      const { promise: finished, resolve } = Promise.withResolvers<void>();
      root.once('finish', resolve).end();
      await finished;
      for (const { output, stream } of targets) if (output.target.type === 'file') stream.destroy();
    },
  };
}

/** Sets the time once, so that all outputs show the same time. */
const TIMED: ReturnType<typeof format.json> = format((info) => {
  info.time = new Date();
  return info;
})();

/** Writes the records that reach the output, and drops the others. */
function formatOf(output: LogOutput, route: Route): ReturnType<typeof format.json> {
  const { type } = output.target;
  const toJournal = type !== 'file' && isJournal(type);
  const toText = toJournal && output.format === textFormat ? journalFormat : output.format;
  return format((info) => {
    const record = toRecord(info);
    if (!route(record.logger, record.level).has(output)) return false;
    const text = printable(toText(record));
    info[MESSAGE] = toJournal ? prioritized(text, record.level) : text;
    return info;
  })();
}

function toRecord(info: Info): LogRecord {
  const { level, message, time, logger, stack, ...meta } = info;
  return {
    time: time as Date,
    level: level as LogLevel,
    logger: logger as string,
    message: typeof message === 'string' ? oneLine(message) : JSON.stringify(message),
    // The stack of an operating-system error adds nothing, because the message names the call.
    ...(typeof stack === 'string' && !('syscall' in meta) && { stack }),
    meta,
  };
}

/** Returns the outputs of a record, by the rules of Python's logging. */
type Route = (logger: string, level: LogLevel) => ReadonlySet<LogOutput>;

/** Makes the route for some settings. */
export function routesOf(loggers: LogSettings): Route {
  const known = new Map<string, ReadonlySet<LogOutput>>(); // one entry per logger and level
  return (logger, level) => {
    const key = `${level} ${logger}`;
    const route = known.get(key) ?? findRoute(loggers, logger, level);
    known.set(key, route);
    return route;
  };
}

function findRoute(loggers: LogSettings, logger: string, level: LogLevel): ReadonlySet<LogOutput> {
  const chain = ancestry(logger).flatMap((name) => loggers.get(name) ?? []);
  if (!passes(level, chain.find((settings) => settings.level !== undefined)?.level)) return new Set();
  const last = chain.findIndex((settings) => !settings.propagate);
  const reached = last === -1 ? chain : chain.slice(0, last + 1);
  return new Set(reached.flatMap(({ outputs }) => outputs).filter((output) => passes(level, output.level)));
}

/** Returns a name and the names above it: `nodepool.image`, `nodepool`, and the empty name of the root. */
function ancestry(logger: string): readonly string[] {
  const parts = logger.split('.');
  return [...parts.map((_part, index) => parts.slice(0, parts.length - index).join('.')), ''];
}

function passes(level: LogLevel, threshold: LogThreshold | undefined): boolean {
  if (threshold === undefined) return true;
  return threshold !== 'silent' && LOG_LEVELS.indexOf(level) <= LOG_LEVELS.indexOf(threshold);
}
