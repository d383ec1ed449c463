import type { Logger } from '@nodepool-builder/image-builder';
import { createLogger, format, transports, type Logger as WinstonLogger } from 'winston';
import type { LogOutput, LogSettings } from './log-settings.ts';
import { openTarget } from './log-target.ts';
import { defaultLogSettings } from './read-log-settings.ts';
import type { LogLevel, LogRecord } from './record-format.ts';
import { type Route, routesOf } from './routes.ts';

/** Winston's own copy of a record. A transport writes the text under {@link MESSAGE}. */
type Info = Parameters<ReturnType<typeof format.json>['transform']>[0];

/** Key of the formatted text. */
const MESSAGE = Symbol.for('message');

/** The log of a process. */
export interface Logging {
  /** Returns a logger by its nodepool name, such as `nodepool.image.build.debian`. */
  logger(name: string): Logger;
  /** Writes all pending records. */
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

/** Sets the time once, so that it is the same at each output. */
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
