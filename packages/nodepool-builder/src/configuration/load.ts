import { homedir } from 'node:os';
import { dirname, resolve } from 'node:path';
import type { ProviderHost, ProviderModule } from '@nodepool-builder/image-builder';
import { Modules } from '../modules.ts';
import type { Configuration, ProviderConfiguration } from './configuration.ts';
import { cronFaults } from './cron-faults.ts';
import { diskImageEntries, diskImageFindings } from './disk-images.ts';
import { ConfigurationError, type Fault } from './fault.ts';
import { toFault } from './finding.ts';
import { withFloatTexts } from './float-texts.ts';
import { gearmanServerFaults } from './gearman-server.ts';
import { hostFaults } from './host-faults.ts';
import { imageFaults } from './image-faults.ts';
import { imageFilterFaults } from './image-filters.ts';
import { inheritanceFaults, withInheritance } from './inheritance.ts';
import { laterNodepoolFault } from './later-nodepool.ts';
import { normalise } from './normalise.ts';
import { keepPlugins, type LoadedPlugins, loadPlugins } from './plugins.ts';
import { implicitEntries, moduleOf, modulesByName, toProvider } from './provider.ts';
import { providerFaults } from './provider-faults.ts';
import { providerImageFaults, withProviderImages } from './provider-images.ts';
import type { ProviderModules } from './provider-schema.ts';
import { readDocument } from './read-document.ts';
import { referenceFaults } from './reference-faults.ts';
import { configurationSchema } from './schema.ts';
import { humanPath, schemaFaults } from './schema-faults.ts';
import { readSecureFile, type SecureEnvVars } from './secure-file.ts';
import { type ConfigurationSource, lastOfEachName, type ProviderSource } from './source.ts';
import type { YamlDocument } from './yaml-document.ts';

/** A configuration, and what may be wrong with it although it can be used. */
export interface LoadedConfiguration {
  readonly configuration: Configuration;
  /** The files that it came from, and those that would be read in their place if they were there. */
  readonly files: readonly string[];
  readonly warnings: readonly Fault[];
  /** The plugins that it names, and all modules. */
  readonly plugins: LoadedPlugins;
}

/** Where modules look for files and variables. */
export type ProviderPlace = Omit<ProviderHost, 'warn'>;

/** Settings of {@link loadConfiguration}. */
export interface LoadOptions {
  /** The kinds of builders and providers to choose from. Default: those that come with nodepool-builder. */
  readonly modules?: Modules;
  /** The plugins of this process, if the configuration is read again. Default: they are loaded. */
  readonly plugins?: LoadedPlugins | undefined;
  /** A file with `env-vars` that are kept apart from `nodepool.yaml`; they come on top of those there. */
  readonly secure?: string | undefined;
  /** Where clouds.yaml and the variables `OS_*` are looked for. Default: as this process sees them. */
  readonly place?: ProviderPlace;
  /** Whether to warn of directories and programs that this host lacks. Default false. */
  readonly checksHost?: boolean;
}

/**
 * Reads a `nodepool.yaml`, and the clouds that its providers name. Relative paths in it count from the directory of
 * the file. A cloud that cannot be found is a warning; uploads to it fail with the reason.
 *
 * @throws ConfigurationError with every fault, each with line, reason and remedy.
 */
export async function loadConfiguration(
  path: string,
  {
    modules: builtIn = Modules.builtIn,
    plugins: loadedPlugins,
    secure,
    place = { env: process.env, cwd: process.cwd(), home: homedir() },
    checksHost = false,
  }: LoadOptions = {},
): Promise<LoadedConfiguration> {
  const file = resolve(path);
  const document = await readDocument(file, '-c', { duplicateKeys: 'last' });
  const plugins = loadedPlugins
    ? keepPlugins(document, loadedPlugins)
    : await loadPlugins(document, file, builtIn);
  const { modules } = plugins;
  const faults: Fault[] = [...document.duplicates.map(toDuplicateFault), ...plugins.faults];
  // Errors that follow from a missing module would hide the reason.
  if (!faults.some(isError)) faults.push(...formFaults(document, modules));
  if (faults.some(isError)) throw new ConfigurationError(file, faults);
  const written = withFloatTexts(document, document.value as ConfigurationSource);
  faults.push(...inheritanceFaults(document, written), ...imageFaults(document, written, modules));
  if (faults.some(isError)) throw new ConfigurationError(file, faults);
  const source = withInheritance(written, modules);
  const absolute = (relative: string): string => resolve(dirname(file), relative);
  const timeFaults = await cronFaults(document, source);
  const surroundings = {
    providers: modulesByName(source.providers ?? [], modules.providers),
    ...(source['script-dir'] && { scriptDir: source['script-dir'] }),
    absolute,
  };
  const entries = diskImageEntries(source, modules);
  faults.push(
    ...referenceFaults(document, source, modules),
    ...providerFaults(document, source, modules.providers, absolute),
    ...entries
      .flatMap((entry) => diskImageFindings(entry, modules, surroundings))
      .map((finding) => toFault(document, finding)),
    ...providerImageFaults(document, { source, modules, surroundings }),
    ...imageFilterFaults(document, source),
    ...(await gearmanServerFaults(document, source, absolute)),
    ...timeFaults,
  );
  if (faults.some(isError)) throw new ConfigurationError(file, faults);
  if (checksHost)
    faults.push(...(await hostFaults(document, source, { modules: modules.providers, entries, absolute })));
  // What is left of them is a warning: the cron expression for all images, which is as good as none then.
  const timed = timeFaults.length === 0 ? source : { ...source, cron: null };
  const usable = withProviderImages({ source: timed, modules, surroundings });
  const secureFile = secure && resolve(secure);
  const secureEnvVars: SecureEnvVars = secureFile ? await readSecureFile(secureFile) : new Map();
  const { warnings, ...read } = await readProviders(document, usable, {
    modules: modules.providers,
    place,
    absolute,
  });
  return {
    configuration: normalise(usable, {
      file,
      entries: diskImageEntries(usable, modules),
      ...read,
      surroundings,
      secure: secureEnvVars,
    }),
    files: [
      file,
      ...(secureFile ? [secureFile] : []),
      ...watchedFiles(
        read.providers.map(({ module }) => module),
        place,
      ),
    ],
    warnings: [...faults, ...warnings],
    plugins,
  };
}

/** A file for another nodepool gets one error: the schema would find one in each line. */
function formFaults(document: YamlDocument, modules: Modules): readonly Fault[] {
  const later = laterNodepoolFault(document, [...modules.providers.keys()]);
  if (later?.severity === 'error') return [later];
  return [...(later === undefined ? [] : [later]), ...schemaFaults(document, configurationSchema(modules))];
}

function isError(fault: Fault): boolean {
  return fault.severity === 'error';
}

/** nodepool's own YAML reader takes the later of the two without a word. */
function toDuplicateFault({ key, line, column }: YamlDocument['duplicates'][number]): Fault {
  const reason = `the key "${key}" stands there a second time`;
  return { line, column, severity: 'warning', reason, remedy: 'this one counts; remove one of the two' };
}

interface ReadProvidersOptions {
  readonly modules: ProviderModules;
  readonly place: ProviderPlace;
  readonly absolute: (path: string) => string;
}

async function readProviders(
  document: YamlDocument,
  { providers: entries }: ConfigurationSource,
  { modules, place, absolute }: ReadProvidersOptions,
): Promise<Pick<Configuration, 'providers' | 'instanceProviders'> & { readonly warnings: readonly Fault[] }> {
  const warnings = new Map<string, Fault>(); // by reason: several providers may share a cloud, and its problems
  const toConfiguration = async (provider: ProviderSource): Promise<ProviderConfiguration> => {
    const pointer = `/providers/${(entries ?? []).indexOf(provider)}`;
    const warn = (reason: string, remedy: string): void => {
      if (warnings.has(reason)) return;
      warnings.set(reason, { ...document.positionOf(pointer), severity: 'warning', reason, remedy });
    };
    const host = { ...place, warn: (message: string) => warn(message, 'see to it') };
    const read = await toProvider(provider, moduleOf(provider, modules), absolute, host);
    const { error } = read.prepared;
    if (error !== undefined) warn(`${humanPath(pointer)}: ${error.message}`, 'until then uploads to it fail');
    return read;
  };
  const sources = lastOfEachName([...implicitEntries(modules), ...(entries ?? [])]);
  const read: ProviderConfiguration[] = [];
  for (const provider of sources) read.push(await toConfiguration(provider));
  return {
    providers: read.filter(({ module }) => module.openImages !== undefined),
    instanceProviders: read.filter(({ module }) => module.openImages === undefined),
    warnings: [...warnings.values()],
  };
}

function watchedFiles(modules: readonly ProviderModule[], place: ProviderPlace): readonly string[] {
  return [...new Set(modules)].flatMap((module) => module.files?.(place) ?? []);
}
