import { Option } from 'commander';
import { LOG_LEVELS, type LogLevel } from '../logging/record-format.ts';

/** Default path of nodepool's configuration. */
export const DEFAULT_CONFIG_FILE = '/etc/nodepool/nodepool.yaml';

/** `-c` of every command that reads `nodepool.yaml`. */
export function configOption(): Option {
  return new Option('-c, --config <file>', 'configuration file').default(DEFAULT_CONFIG_FILE);
}

/** `-l` of commands that run until a signal stops them. */
export function loggingConfigOption(whereElse = 'all to standard error'): Option {
  const description = `logging configuration file, of Python or in YAML (default: ${whereElse})`;
  return new Option('-l, --logging-config <file>', description).argParser(expandUser);
}

/** `--log-level` of commands that write a log. A file of `-l` has its own levels. */
export function logLevelOption(whereElse: LogLevel): Option {
  return new Option('--log-level <level>', `minimum level of the log (default: ${whereElse})`)
    .choices(LOG_LEVELS)
    .conflicts('loggingConfig');
}

/** Expands `~`. An init script may have quoted the path, so that no shell expanded it. */
function expandUser(path: string): string {
  // Loaded on demand, so that --help starts faster.
  return path.replace(/^~(?=\/|$)/, () => process.getBuiltinModule('node:os').homedir());
}

/** `-s` of every command that builds. */
export function secureOption(): Option {
  const description = 'YAML file with secret env-vars of diskimages: builds get them, logs hide them';
  return new Option('-s, --secure <file>', description);
}

/** `--json-file`, for Zuul jobs, which merge both output streams of a command. */
export function jsonFileOption(): Option {
  return new Option('--json-file <file>', 'write the JSON to a file, apart from warnings');
}

/** Formats the examples at the end of a command's help. Long command lines continue on the next line. */
export function exampleOf(...commandLines: readonly string[]): string {
  const lines = commandLines.map((line) =>
    `  $ nodepool-builder ${line}`.replace(/^(?=.{81})(.{1,78}) (?=-|> )/, '$1 \\\n      '),
  );
  return ['', commandLines.length > 1 ? 'Examples:' : 'Example:', ...lines].join('\n');
}
