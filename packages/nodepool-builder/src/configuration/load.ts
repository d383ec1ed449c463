import { homedir } from 'node:os';
import { resolve } from 'node:path';
import type { Diagnostic, ProviderHost } from '@nodepool-builder/image-builder';
import { ConfigurationError, humanPath, type LocatedDiagnostic } from '../yaml/diagnostic.ts';
import { schemaDiagnostics } from '../yaml/schema-diagnostics.ts';
import { lastOfEachName } from '../yaml/values.ts';
import { readYaml, type YamlDocument } from '../yaml/yaml-document.ts';
import { attestationDiagnostics } from './attestation-checks.ts';
import { cronDiagnostics } from './checks.ts';
import { cloudImageDiagnostics } from './cloud-image-checks.ts';
import type { Configuration, ProviderConfiguration } from './configuration.ts';
import { toDiskImage } from './disk-image.ts';
import { diskImageDiagnostics, diskImageNameDiagnostics, jobDiagnostics } from './disk-image-checks.ts';
import { gearmanServerDiagnostics } from './gearman-server.ts';
import { foreignCodeDiagnostics, hostDiagnostics } from './host-checks.ts';
import { inheritanceDiagnostics, withInheritance } from './inheritance.ts';
import { readManager, storeDiagnostics } from './manager.ts';
import { Modules } from './modules.ts';
import { notificationDiagnostics } from './notification.ts';
import { readSecureFile, type SecureEnvVars } from './option-files.ts';
import { type ConfigurationParts, readParts } from './parts.ts';
import { keepPlugins, type LoadedPlugins, loadPlugins } from './plugins.ts';
import { type ListedProvider, toProvider } from './provider.ts';
import { providerDiagnostics, providerReferenceDiagnostics } from './provider-checks.ts';
import { describedImages } from './provider-images.ts';
import { type ConfigurationSource, configurationSchema } from './schema.ts';
import { laterNodepoolDiagnostic } from './unread-keys.ts';

/** A valid configuration, with warnings. */
export interface LoadedConfiguration {
  readonly configuration: Configuration;
  /** The files that were read, and files that would be read if they existed. */
  readonly files: readonly string[];
  readonly warnings: readonly LocatedDiagnostic[];
  /** Missing directories and programs of this host, with `checksHost`. They are also in {@link warnings}. */
  readonly hostDiagnostics: readonly Diagnostic[];
  /** The plugins that the configuration names, and all modules. */
  readonly plugins: LoadedPlugins;
}

/** Locations of the files and variables that modules read. */
type ProviderPlace = Omit<ProviderHost, 'warn'>;

/** Settings of {@link loadConfiguration}. */
export interface LoadOptions {
  /** Modules to choose from. Default: the built-in modules. */
  readonly modules?: Modules;
  /** The plugins of this process, if the configuration is reloaded. Default: they are loaded. */
  readonly plugins?: LoadedPlugins | undefined;
  /** A file with `env-vars` that are kept apart from `nodepool.yaml`. They override the `env-vars` there. */
  readonly secure?: string | undefined;
  /** Locations of clouds.yaml and the variables `OS_*`. Default: this process's. */
  readonly place?: ProviderPlace;
  /** True to warn about directories and programs that this host lacks. Default false. */
  readonly checksHost?: boolean;
}

/**
 * Reads a `nodepool.yaml`, and the clouds that its providers name. Relative paths in it are resolved against its
 * directory. A cloud that cannot be found is a warning, and uploads to it fail with the reason.
 *
 * @throws ConfigurationError with line, reason and remedy of each error
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
  const unfitted = await readYaml(file, '-c', { duplicateKeys: 'last', variables: place.env });
  const report = new Report(unfitted);
  const plugins = loadedPlugins
    ? keepPlugins(unfitted.value, loadedPlugins)
    : await loadPlugins(unfitted.value, file, builtIn);
  const { modules } = plugins;
  report.add(plugins.diagnostics);
  report.throwErrors(); // errors that a missing module causes would hide the reason
  const later = laterNodepoolDiagnostic(unfitted.value, [...modules.providers.keys()]);
  if (later !== undefined) report.add([later]);
  report.throwErrors(); // for a file of another nodepool, the schema would report an error in each line
  const schema = configurationSchema(modules);
  const document = unfitted.fitted(schema);
  report.diagnostics.push(...schemaDiagnostics(document, schema));
  report.throwErrors();
  const written = document.value as ConfigurationSource;
  report.add([...inheritanceDiagnostics(written.diskimages ?? []), ...jobDiagnostics(written, modules)]);
  report.throwErrors();

  const parts = readParts(document, withInheritance(written, modules), modules);
  for (const check of CHECKS) report.add(check(parts));
  const described = describedImages(parts);
  report.add(described.diagnostics);
  report.add(await gearmanServerDiagnostics(parts.general));
  report.add(await notificationDiagnostics(parts.general.notifications));
  report.add(await attestationDiagnostics(parts));
  const timeDiagnostics = [...cronDiagnostics(parts)];
  report.add(timeDiagnostics);
  report.throwErrors();
  const secureFile = secure && resolve(secure);
  const secureEnvVars: SecureEnvVars = secureFile ? await readSecureFile(secureFile, place.env) : new Map();
  const missing = checksHost ? await hostDiagnostics(parts, written, secureEnvVars) : [];
  report.add(missing);
  if (checksHost) report.add(foreignCodeDiagnostics(parts));

  const read = await readProviders([...parts.implicit, ...described.providers], parts.source, place, report);
  const providers = read.filter(takesImages);
  // An invalid time that is only a warning is in `cron`, which is then ignored.
  const general = timeDiagnostics.length === 0 ? parts.general : { ...parts.general, cron: null };
  const diskimages = lastOfEachName(described.diskimages).flatMap(
    (entry) => toDiskImage(entry, { ...parts, general }, providers, secureEnvVars) ?? [],
  );
  const configuration: Configuration = {
    ...general,
    file,
    maxDiskSize: general['virtual-size-limit'] * 2 ** 30,
    compressesQcow2: providers.some(({ entry }) => entry['compress-qcow2']),
    diskimages,
    providers,
    instanceProviders: read.filter((provider) => !takesImages(provider)),
    manager: readManager(parts),
  };
  const used = new Set(providers.map(({ module }) => module));
  const cloudFiles = [...used].flatMap((module) => module.files?.(place) ?? []);
  return {
    configuration,
    files: [file, ...(secureFile ? [secureFile] : []), ...cloudFiles],
    warnings: report.diagnostics,
    hostDiagnostics: missing,
    plugins,
  };
}

/** Checks of parts, in the order of their diagnostics. */
const CHECKS: readonly ((parts: ConfigurationParts) => Iterable<Diagnostic>)[] = [
  diskImageNameDiagnostics,
  storeDiagnostics,
  providerReferenceDiagnostics,
  providerDiagnostics,
  cloudImageDiagnostics,
  diskImageDiagnostics,
];

function takesImages({ module }: ProviderConfiguration): boolean {
  return module.images !== undefined;
}

/** The diagnostics of a file so far. */
class Report {
  readonly diagnostics: LocatedDiagnostic[];
  readonly #document: YamlDocument;

  /**
   * Collects the document's own diagnostics: duplicate keys, of which nodepool silently uses the last, and unset
   * variables, which nodepool does not replace.
   */
  constructor(document: YamlDocument) {
    this.#document = document;
    this.diagnostics = document.duplicates.map(({ key, line, column }) => {
      const reason = `the key "${key}" is defined twice`;
      return { line, column, severity: 'warning', reason, remedy: 'this one counts; remove one of the two' };
    });
    for (const { name, line, column } of document.unset) {
      const reason = `the variable ${name} is not set`;
      const remedy = `%(${name}) stays as it is; set it`;
      this.diagnostics.push({ line, column, severity: 'warning', reason, remedy });
    }
  }

  add(diagnostics: Iterable<Diagnostic>): void {
    for (const { pointer, severity, reason, remedy } of diagnostics) {
      this.locate(pointer, {
        severity: severity ?? 'error',
        reason: `${humanPath(pointer)} ${reason}`,
        remedy,
      });
    }
  }

  locate(pointer: string, problem: Pick<LocatedDiagnostic, 'severity' | 'reason' | 'remedy'>): void {
    this.diagnostics.push({ ...this.#document.positionOf(pointer), ...problem });
  }

  throwErrors(): void {
    if (this.diagnostics.every(({ severity }) => severity !== 'error')) return;
    throw new ConfigurationError(this.#document.file, this.diagnostics);
  }
}

async function readProviders(
  listed: readonly ListedProvider[],
  { 'cloud-images': cloudImages }: ConfigurationSource,
  place: ProviderPlace,
  report: Report,
): Promise<readonly ProviderConfiguration[]> {
  const reported = new Set<string>(); // several providers may share a cloud, and its errors
  const read: ProviderConfiguration[] = [];
  for (const provider of lastOfEachName(listed)) {
    const { pointer } = provider;
    const warn = (reason: string, remedy = 'correct it'): void => {
      if (!reported.has(reason)) report.locate(pointer, { severity: 'warning', reason, remedy });
      reported.add(reason);
    };
    const found = await toProvider(provider, { ...place, warn }, cloudImages);
    const { error } = found.prepared;
    if (error !== undefined) warn(`${humanPath(pointer)}: ${error.message}`, 'until then uploads to it fail');
    read.push(found);
  }
  return read;
}
