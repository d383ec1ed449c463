import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { resolve } from 'node:path';
import { Option } from 'commander';
import { SiteAttestation } from '../attestation/site-attestation.ts';
import type { Configuration, ProviderConfiguration } from '../configuration/configuration.ts';
import { loadConfiguration } from '../configuration/load.ts';
import { type Modules, SHORT_FORMS } from '../configuration/modules.ts';
import { listedProvider, toProvider } from '../configuration/provider.ts';
import { DEFAULT_PROVIDER_TYPE } from '../configuration/provider-schema.ts';
import type { Providers, UploadTarget } from '../site/providers.ts';
import { CommandError, findByName, STANDARD_ERROR_LOGGER, usageError, warn } from '../terms/command-error.ts';
import { openJobProviders } from './job-workspace.ts';
import { DEFAULT_CONFIG_FILE } from './options.ts';
import { untilStopSignal } from './stop-signal.ts';

/** Values of {@link providerOption} and {@link optionalConfigOption}. */
export interface ProviderOptions {
  readonly provider: string;
  /**
   * Path of the configuration. Default: {@link DEFAULT_CONFIG_FILE} if it exists and {@link provider} is not a short
   * form, else none.
   */
  readonly config?: string;
}

/** `--provider` of commands for CI jobs. */
export function providerOption(): Option {
  const description = `provider of the configuration file; without such a file, a cloud of clouds.yaml; without -c also ${SHORT_FORM_NAMES}`;
  return new Option('--provider <provider>', description).makeOptionMandatory();
}

/** `-c` of commands that work without a configuration file. */
export function optionalConfigOption(): Option {
  const description = `configuration file (default: ${DEFAULT_CONFIG_FILE} if it exists, else none)`;
  return new Option('-c, --config <file>', description);
}

/** A command's provider, with its settings and directory. */
interface OpenedProvider extends UploadTarget {
  readonly providers: Providers;
  /** Aborts at SIGTERM and SIGINT. */
  readonly signal: AbortSignal;
  /** Maximum virtual size of a disk to convert, in bytes, if a configuration file sets it. */
  readonly maxDiskSize: number | undefined;
  /** Attestations that the configuration file requires; undefined without such a file. */
  readonly attestation: SiteAttestation | undefined;
}

/**
 * Opens the provider of `--provider` for one task, and closes it.
 *
 * @throws CommandError for an unknown provider, with the known ones
 */
export async function withProvider<T>(
  options: ProviderOptions,
  modules: Modules,
  work: (opened: OpenedProvider) => Promise<T>,
): Promise<T> {
  const { configuration, maxDiskSize, attestation } = await findProvider(options, modules);
  const { name, module } = configuration;
  const providers = openJobProviders({ providers: [configuration], instanceProviders: [] });
  try {
    const { provider } = providers.get(name) ?? {};
    if (provider === undefined) {
      throw new CommandError(`provider "${name}" of type ${module.type} does not store images; name another`);
    }
    return await untilStopSignal((signal) =>
      work({ configuration, provider, providers, maxDiskSize, attestation, signal }),
    );
  } finally {
    providers[Symbol.dispose]();
  }
}

/**
 * Loads the configuration of `-c`, or of {@link DEFAULT_CONFIG_FILE}.
 *
 * @returns undefined without `-c` if the default file does not exist
 * @throws ConfigurationError
 */
export async function loadOptionalConfiguration(
  file: string | undefined,
  modules: Modules,
): Promise<Configuration | undefined> {
  if (file === undefined && !existsSync(DEFAULT_CONFIG_FILE)) return undefined;
  return (await loadConfiguration(file ?? DEFAULT_CONFIG_FILE, { modules })).configuration;
}

async function findProvider(
  { provider: name, config }: ProviderOptions,
  modules: Modules,
): Promise<Pick<OpenedProvider, 'configuration'> & Partial<OpenedProvider>> {
  const [type = '', ...rest] = name.split(':');
  if (config === undefined && rest.length > 0 && SHORT_FORMS.has(type)) {
    return { configuration: await providerOf(name, type, rest.join(':'), modules) };
  }
  const file = await loadOptionalConfiguration(config, modules);
  if (file === undefined) {
    return { configuration: await providerOf(name, DEFAULT_PROVIDER_TYPE, name, modules) };
  }
  const configuration =
    file.instanceProviders.find((provider) => provider.name === name) ??
    findByName(file.providers, 'provider', name, file.file);
  const attestation = new SiteAttestation(file, STANDARD_ERROR_LOGGER);
  return { configuration, maxDiskSize: file.maxDiskSize, attestation };
}

/** Opens a provider that only the command line describes. */
async function providerOf(
  name: string,
  type: string,
  text: string,
  { providers }: Modules,
): Promise<ProviderConfiguration> {
  const module = providers.get(type);
  if (module === undefined) throw usageError(`--provider ${name} needs a configuration file; add -c`);
  if (text === '') throw usageError(`--provider ${name} is incomplete; write ${formOf(type)}`);
  const host = { env: process.env, cwd: process.cwd(), home: homedir(), warn };
  const source = { ...SHORT_FORMS.get(type)?.settings(text), name };
  const found = await toProvider(listedProvider('', source, module, resolve), host);
  const { error } = found.prepared;
  if (error === undefined) return found;
  throw new CommandError(
    `${error.message}; other providers have the form ${SHORT_FORM_NAMES}; a provider of nodepool.yaml needs -c`,
    'failed',
    { cause: error },
  );
}

function formOf(type: string): string {
  return `${type}:${SHORT_FORMS.get(type)?.placeholder}`;
}

/** The short forms of all types except the default type, which needs no prefix. */
const SHORT_FORM_NAMES = Array.from(SHORT_FORMS.keys())
  .filter((type) => type !== DEFAULT_PROVIDER_TYPE)
  .map(formOf)
  .join(' or ');
