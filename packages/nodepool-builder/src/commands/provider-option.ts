import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { resolve } from 'node:path';
import { Option } from 'commander';
import { findCloud } from '../configuration/clouds.ts';
import type { ProviderConfiguration } from '../configuration/configuration.ts';
import { loadConfiguration } from '../configuration/load.ts';
import { toProvider } from '../configuration/provider.ts';
import { Providers } from '../daemon/providers.ts';
import { Statistics } from '../jobs/statistics.ts';
import type { ConfiguredProvider } from '../jobs/upload-job.ts';
import { CommandError } from './command-error.ts';
import { DEFAULT_CONFIG_FILE } from './options.ts';
import { STANDARD_ERROR_LOGGER } from './standard-error-logger.ts';
import { untilStopSignal } from './stop-signal.ts';

/** What {@link providerOption} and {@link providerConfigOption} bring. */
export interface ProviderOptions {
  readonly provider: string;
  /** Default: {@link DEFAULT_CONFIG_FILE} if it is there and {@link provider} names no directory, else none. */
  readonly config?: string;
}

/** `--provider` of commands that need no daemon: they run in a CI job. */
export function providerOption(): Option {
  const description =
    'a provider of the configuration file, or if there is none a cloud of clouds.yaml; without -c also directory:PATH';
  return new Option('--provider <provider>', description).makeOptionMandatory();
}

/** `-c` of those commands. */
export function providerConfigOption(): Option {
  return new Option(
    '-c, --config <file>',
    `configuration file (default: ${DEFAULT_CONFIG_FILE} if it is there, else none)`,
  );
}

/**
 * Does something with the provider that was chosen, and closes it. SIGTERM and SIGINT abort the signal; a second one
 * ends the process.
 *
 * @param work gets the largest disk that is converted, in bytes, if a configuration file says
 * @param builders names that `diskimages[].builder` may have
 * @throws CommandError if there is no such provider, with those that there are
 */
export async function withProvider<T>(
  options: ProviderOptions,
  builders: readonly string[],
  work: (provider: ConfiguredProvider, signal: AbortSignal, largestDisk?: number) => Promise<T>,
): Promise<T> {
  const { configuration, largestDisk } = await findProvider(options, builders);
  const providers = new Providers({
    logger: () => STANDARD_ERROR_LOGGER,
    statistics: new Statistics(undefined),
    environment: process.env,
  });
  try {
    providers.configure([configuration]);
    const provider = providers.byName.get(configuration.name) as ConfiguredProvider;
    return await untilStopSignal((signal) => work(provider, signal, largestDisk));
  } finally {
    providers[Symbol.dispose]();
  }
}

const DIRECTORY = 'directory:';

interface FoundProvider {
  readonly configuration: ProviderConfiguration;
  /** Of the configuration file, in bytes. */
  readonly largestDisk?: number;
}

async function findProvider(
  { provider: name, config }: ProviderOptions,
  builders: readonly string[],
): Promise<FoundProvider> {
  const file = config ?? (existsSync(DEFAULT_CONFIG_FILE) ? DEFAULT_CONFIG_FILE : undefined);
  if (config === undefined && name.startsWith(DIRECTORY)) return { configuration: directoryProvider(name) };
  if (file === undefined) return { configuration: await cloudProvider(name) };
  return await configuredProvider(name, file, builders);
}

async function configuredProvider(
  name: string,
  file: string,
  builders: readonly string[],
): Promise<FoundProvider> {
  const { configuration } = await loadConfiguration(file, { builders });
  const found = configuration.providers.find((provider) => provider.name === name);
  if (found !== undefined) return { configuration: found, largestDisk: configuration.largestDisk };
  if (configuration.qemuProviders.some((provider) => provider.name === name)) {
    throw new CommandError(`provider "${name}" is of type qemu: it takes no images; name another`);
  }
  const names = configuration.providers.map((provider) => provider.name).join(', ') || 'none';
  throw new CommandError(`provider "${name}" is not in ${configuration.file}; there is ${names}`);
}

function directoryProvider(name: string): ProviderConfiguration {
  const directory = name.slice(DIRECTORY.length);
  if (directory === '') throw new CommandError(`--provider ${name} names no directory; write directory:PATH`);
  return toProvider({ name, type: 'directory', directory, rate: 0 }, undefined, resolve);
}

async function cloudProvider(name: string): Promise<ProviderConfiguration> {
  const place = { env: process.env, cwd: process.cwd(), home: homedir(), warn };
  const source = { name, cloud: name, rate: 0 };
  const cloud = await findCloud(source, place);
  if (cloud.error === undefined) return toProvider(source, cloud, resolve);
  throw new CommandError(
    `${cloud.error.message}; a directory is named by ${DIRECTORY}PATH, a provider of nodepool.yaml needs -c`,
    { cause: cloud.error },
  );
}

function warn(message: string): void {
  STANDARD_ERROR_LOGGER.warn(message);
}
