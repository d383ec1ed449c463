import { homedir } from 'node:os';
import { parseDuration } from '@nodepool-builder/image-builder/module-kit';
import { InvalidArgumentError, Option } from 'commander';

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

/** `-s` of every command that builds. */
export function secureOption(): Option {
  const description = 'YAML file with secret env-vars of diskimages: builds get them, logs hide them';
  return new Option('-s, --secure <file>', description);
}

/** Expands `~`: an init script may have quoted the path, so that no shell expanded it. */
function expandUser(path: string): string {
  return path.replace(/^~(?=\/|$)/, homedir());
}

/** Parser of options that count something. */
export function positiveInteger(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 1)
    throw new InvalidArgumentError('It must be a whole number above 0.');
  return value;
}

/** Parser of options that may be 0. */
export function wholeNumber(text: string): number {
  return text === '0' ? 0 : positiveInteger(text);
}

/** Parser of durations: returns milliseconds. */
export function duration(text: string): number {
  const milliseconds = parseDuration(text);
  if (milliseconds !== undefined) return milliseconds;
  throw new InvalidArgumentError('It must be a number and a unit: 90m, 12h, 7d.');
}

/** Parser of TCP ports; with 0, the system chooses one. */
export function portNumber(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 0 || value > 65_535) {
    throw new InvalidArgumentError('It must be a port number.');
  }
  return value;
}
