import type { LogOutput, LogSettings, LogThreshold } from './log-settings.ts';
import { LOG_LEVELS, type LogLevel } from './record-format.ts';

/** Returns the outputs of a record, by the rules of Python's logging. */
export type Route = (logger: string, level: LogLevel) => ReadonlySet<LogOutput>;

/** Makes the route for some settings. */
export function routesOf({ loggers }: LogSettings): Route {
  const known = new Map<string, ReadonlySet<LogOutput>>(); // one entry per logger and level
  return (logger, level) => {
    const key = `${level} ${logger}`;
    const route = known.get(key) ?? findRoute(loggers, logger, level);
    known.set(key, route);
    return route;
  };
}

function findRoute(loggers: LogSettings['loggers'], logger: string, level: LogLevel): ReadonlySet<LogOutput> {
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
