import { InvalidArgumentError, Option } from 'commander';

/** Where nodepool keeps its configuration. */
export const DEFAULT_CONFIG_FILE = '/etc/nodepool/nodepool.yaml';

/** `-c`, which every command that reads `nodepool.yaml` takes. */
export function configOption(): Option {
  return new Option('-c, --config <file>', 'configuration file').default(DEFAULT_CONFIG_FILE);
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

/** For a TCP port; 0 lets the system choose one. */
export function portNumber(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 0 || value > 65_535) {
    throw new InvalidArgumentError('It has to be a port number.');
  }
  return value;
}
