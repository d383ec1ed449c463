import type { Logger } from '@nodepool-builder/image-builder';
import { createLogger, format, transports, type Logger as WinstonLogger } from 'winston';
import { DEFAULT_LOG_SETTINGS, type LogFormat, type LogOutput, type LogSettings } from './log-settings.ts';

/** The log of one process. */
export interface Logging {
  /** A logger by its name in nodepool: `nodepool.builder`, `nodepool.image.build.debian`. */
  logger(name: string): Logger;
  /** Writes what is still on its way. */
  close(): Promise<void>;
}

/** Opens the log. */
export function openLogging(settings: LogSettings = DEFAULT_LOG_SETTINGS): Logging {
  const root = createLogger({
    level: 'debug',
    format: format.combine(loudEnough(settings), format.errors({ stack: true }), format.timestamp()),
    transports: settings.outputs.map(toTransport),
    silent: settings.outputs.length === 0,
  });
  return {
    logger: (name) => root.child({ logger: name }),
    close: () => flush(root),
  };
}

async function flush(root: WinstonLogger): Promise<void> {
  const finished = new Promise<void>((resolve) => root.once('finish', () => resolve()));
  root.end();
  await finished;
}

/** Drops what is below the level of its logger: the longest name that covers it decides. */
function loudEnough(settings: LogSettings): ReturnType<ReturnType<typeof format>> {
  const ranks: Readonly<Record<string, number>> = { silent: -1, error: 0, warn: 1, info: 2, debug: 3 };
  const names = Object.keys(settings.loggers).toSorted((a, b) => b.length - a.length);
  return format((info) => {
    const logger = typeof info.logger === 'string' ? info.logger : '';
    const name = names.find((prefix) => logger === prefix || logger.startsWith(`${prefix}.`));
    const level = name === undefined ? settings.level : (settings.loggers[name] ?? settings.level);
    return (ranks[info.level] ?? 0) <= (ranks[level] ?? 0) ? info : false;
  })();
}

function toTransport(output: LogOutput): InstanceType<typeof transports.Stream | typeof transports.File> {
  if (output.type === 'stderr') {
    return new transports.Stream({ stream: process.stderr, format: toFormat(output.format) });
  }
  return new transports.File({
    filename: output.filename,
    format: toFormat(output.format),
    ...(output['max-size'] !== undefined && { maxsize: output['max-size'] }),
    ...(output['max-files'] !== undefined && { maxFiles: output['max-files'], tailable: true }),
  });
}

function toFormat(name: LogFormat = 'text'): ReturnType<typeof format.json> {
  return name === 'json' ? format.json() : TEXT;
}

/** `2016-05-01 14:02:11,123 INFO nodepool.builder: message`, the layout that nodepool's operators grep. */
const TEXT = format.printf(({ timestamp, level, logger, message, stack }) => {
  const time = text(timestamp).replace('T', ' ').replace('Z', '').replace('.', ',');
  const trace = typeof stack === 'string' ? `\n${stack}` : '';
  return `${time} ${level.toUpperCase()} ${text(logger)}: ${text(message)}${trace}`;
});

function text(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}
