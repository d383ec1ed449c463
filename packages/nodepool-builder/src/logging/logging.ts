import type { Logger } from '@nodepool-builder/image-builder';
import { createLogger, format, transports, type Logger as WinstonLogger } from 'winston';
import type { LogRecord } from './log-record.ts';
import type { LogLevel, LogOutput, LogSettings } from './log-settings.ts';
import { openTarget } from './log-target.ts';
import { defaultLogSettings } from './read-log-settings.ts';
import { type Route, routesOf } from './routes.ts';

/** What winston calls its own copy of a record: its text is what a transport writes. */
type Info = Parameters<ReturnType<typeof format.json>['transform']>[0];

/** The key of the text. */
const MESSAGE = Symbol.for('message');

/** The log of one process. */
export interface Logging {
  /** A logger by its name in nodepool: `nodepool.builder`, `nodepool.image.build.debian`. */
  logger(name: string): Logger;
  /** Writes what is still on its way. */
  close(): Promise<void>;
}

/**
 * Opens the log.
 *
 * @throws ConfigurationError for a file that cannot be written
 */
export function openLogging(settings: LogSettings = defaultLogSettings('info')): Logging {
  const outputs = [...new Set([...settings.loggers.values()].flatMap((logger) => logger.outputs))];
  const route = routesOf(settings);
  const targets = outputs.map((output) => ({ output, ...openTarget(output.target) }));
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
    close: async () => {
      await flush(root);
      for (const target of targets) target.close();
    },
  };
}

async function flush(root: WinstonLogger): Promise<void> {
  const finished = new Promise<void>((resolve) => root.once('finish', () => resolve()));
  root.end();
  await finished;
}

/** The time is the same at each output. */
const TIMED: ReturnType<typeof format.json> = format((info) => {
  info.time = new Date();
  return info;
})();

/** Writes the records that reach the output, and drops the others. */
function formatOf(output: LogOutput, route: Route): ReturnType<typeof format.json> {
  return format((info) => {
    const record = toRecord(info);
    if (!route(record.logger, record.level).has(output)) return false;
    info[MESSAGE] = output.format(record);
    return info;
  })();
}

function toRecord(info: Info): LogRecord {
  const { level, message, time, logger, stack, ...meta } = info;
  return {
    time: time as Date,
    level: level as LogLevel,
    logger: logger as string,
    message: typeof message === 'string' ? message : JSON.stringify(message),
    ...(typeof stack === 'string' && { stack }),
    meta,
  };
}
