import { homedir } from 'node:os';
import { parseDuration } from '@nodepool-builder/image-builder';
import { InvalidArgumentError, Option } from 'commander';

/** Where nodepool keeps its configuration. */
export const DEFAULT_CONFIG_FILE = '/etc/nodepool/nodepool.yaml';

/** `-c`, which every command that reads `nodepool.yaml` takes. */
export function configOption(): Option {
  return new Option('-c, --config <file>', 'configuration file').default(DEFAULT_CONFIG_FILE);
}

/** `-l`, which everything that runs for long takes. */
export function loggingConfigOption(whereElse = 'all to standard error'): Option {
  const description = `logging configuration file, of Python or in YAML (default: ${whereElse})`;
  return new Option('-l, --logging-config <file>', description).argParser(expandUser);
}

/** `-s`, which every command that builds takes. */
export function secureOption(): Option {
  const description = 'YAML file with secret env-vars of diskimages: builds get them, logs hide them';
  return new Option('-s, --secure <file>', description);
}

/** An init script may have quoted it, so that no shell has done it. */
function expandUser(path: string): string {
  return path.replace(/^~(?=\/|$)/, homedir());
}

/** For options that count something. */
export function positiveInteger(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 1)
    throw new InvalidArgumentError('It has to be a whole number above 0.');
  return value;
}

/** For options where 0 has a meaning of its own. */
export function wholeNumber(text: string): number {
  return text === '0' ? 0 : positiveInteger(text);
}

/** For options that are a time, as people write it; milliseconds. */
export function duration(text: string): number {
  const milliseconds = parseDuration(text);
  if (milliseconds !== undefined) return milliseconds;
  throw new InvalidArgumentError('It has to be a number and a unit: 90m, 12h, 7d.');
}

/** For a TCP port; 0 lets the system choose one. */
export function portNumber(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 0 || value > 65_535) {
    throw new InvalidArgumentError('It has to be a port number.');
  }
  return value;
}
