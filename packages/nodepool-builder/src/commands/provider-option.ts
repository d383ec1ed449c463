import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { resolve } from 'node:path';
import { Option } from 'commander';
import { findCloud } from '../configuration/clouds.ts';
import type { Configuration, ProviderConfiguration } from '../configuration/configuration.ts';
import { loadConfiguration } from '../configuration/load.ts';
import { toProvider } from '../configuration/provider.ts';
import { Providers } from '../daemon/providers.ts';
import { Statistics } from '../jobs/statistics.ts';
import type { ConfiguredProvider } from '../jobs/upload-job.ts';
import type { Modules } from '../modules.ts';
import { CommandError } from './command-error.ts';
import { DEFAULT_CONFIG_FILE } from './options.ts';
import { STANDARD_ERROR_LOGGER } from './standard-error-logger.ts';
import { untilStopSignal } from './stop-signal.ts';

/** Values of {@link providerOption} and {@link optionalConfigOption}. */
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

/** `-c` of commands that work without a configuration file. */
export function optionalConfigOption(): Option {
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
 * @throws CommandError if there is no such provider, with those that there are
 */
export async function withProvider<T>(
  options: ProviderOptions,
  modules: Modules,
  work: (provider: ConfiguredProvider, signal: AbortSignal, largestDisk?: number) => Promise<T>,
): Promise<T> {
  const { configuration, largestDisk } = await findProvider(options, modules);
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

/**
 * The configuration of the file that `-c` names, or of {@link DEFAULT_CONFIG_FILE}.
 *
 * @returns undefined if `-c` names none and the default file does not exist
 * @throws ConfigurationError
 */
export async function loadOptionalConfiguration(
  file: string | undefined,
  modules: Modules,
): Promise<Configuration | undefined> {
  if (file === undefined && !existsSync(DEFAULT_CONFIG_FILE)) return undefined;
  return (await loadConfiguration(file ?? DEFAULT_CONFIG_FILE, { modules })).configuration;
}

const DIRECTORY = 'directory:';

interface FoundProvider {
  readonly configuration: ProviderConfiguration;
  /** Of the configuration file, in bytes. */
  readonly largestDisk?: number;
}

async function findProvider(
  { provider: name, config }: ProviderOptions,
  modules: Modules,
): Promise<FoundProvider> {
  if (config === undefined && name.startsWith(DIRECTORY)) return { configuration: directoryProvider(name) };
  const configuration = await loadOptionalConfiguration(config, modules);
  if (configuration === undefined) return { configuration: await cloudProvider(name) };
  return configuredProvider(name, configuration);
}

function configuredProvider(name: string, configuration: Configuration): FoundProvider {
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
