import { existsSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import type {
  BuilderModule,
  DiskImage,
  ObjectSchema,
  SettingsContext,
} from '@nodepool-builder/image-builder';
import { JsonReader } from '@nodepool-builder/image-builder/module-kit';
import type { BuildFacts } from '@nodepool-builder/provenance';
import type { Configuration, DiskImageConfiguration } from '../configuration/configuration.ts';
import { digestOf } from '../configuration/disk-image.ts';
import type { Modules } from '../configuration/modules.ts';
import { CommandError, messageOf } from '../terms/command-error.ts';
import { TEXT } from '../terms/record-schema.ts';
import { packageVersion } from '../terms/version.ts';
import { ownSettings } from '../yaml/values.ts';
import { isMapping } from '../yaml/yaml-document.ts';
import { completed } from './masked-values.ts';

/** A disk image as a statement records it. */
export type RecordedDiskImage = DiskImage &
  Pick<DiskImageConfiguration, 'builder' | 'settings' | 'digest'> & { readonly module: BuilderModule };

/**
 * Parameters of a build. Statements of earlier releases lack `options` and the keys after it. Those of programs that use
 * the library without a configuration have only `environment`.
 */
const PARAMETERS = new JsonReader({
  type: 'object',
  properties: {
    'configuration-digest': TEXT,
    builder: TEXT,
    settings: { type: 'object' },
    environment: { type: 'object', additionalProperties: TEXT },
    options: { type: 'object' },
    release: { type: ['string', 'number'] },
    'elements-dir': TEXT,
    'script-dir': TEXT,
  },
});

/** A configuration, and the modules that it can name. */
interface Site {
  readonly configuration: Configuration;
  readonly modules: Modules;
}

/**
 * The disk image of a build with the recorded settings and variables. Secrets, time limits, validation, and anything that
 * an earlier release did not record come from the configuration.
 *
 * @throws CommandError if its builder does not understand the settings, or if the disk image is no longer in the
 *   configuration and the statement lacks something
 */
export function recordedDiskImage(recorded: BuildFacts, site: Site): RecordedDiskImage {
  const { configuration, modules } = site;
  const name = recorded.imageName ?? '';
  const configured = configuration.diskimages.find((diskimage) => diskimage.name === name);
  const today = configured ?? absentDiskImage(name, configuration);
  const parameters = understood(recorded, () => PARAMETERS.check(recorded.parameters, 'parameters'));
  const { builder = today.builder } = parameters;
  const module = modules.builders.get(builder);
  if (module === undefined) {
    if (builder === '') throw notConfigured(name, site, 'its attestation does not name its builder');
    throw new CommandError(`disk image "${name}" had the unknown builder "${builder}"; add its plugin`);
  }
  const settings = recordedSettings(recorded, parameters.settings, { module, today, site });
  const todaysVariables = today.envVars ?? {};
  const variables = completed(parameters.environment ?? todaysVariables, todaysVariables);
  const options = completed(parameters.options ?? today.options ?? {}, today.options ?? {});
  const { release: _, elementsDir, scriptDir, ...others } = today;
  const release = parameters.options === undefined ? today.release : parameters.release;
  const diskimage = {
    ...others,
    builder,
    settings: settings.value,
    envVars: variables.values,
    options: options.values,
    ...(release !== undefined && { release }),
    ...directoryKey('elementsDir', parameters['elements-dir'], elementsDir),
    ...directoryKey('scriptDir', parameters['script-dir'], scriptDir),
  };
  const digest = digestOf(module, diskimage);
  if (configured === undefined) {
    const [secret] = [...settings.missing, ...variables.missing, ...options.missing];
    if (secret !== undefined) throw notConfigured(name, site, `its attestation masks the secret ${secret}`);
    if (digest !== parameters['configuration-digest']) {
      throw notConfigured(name, site, 'its attestation does not have all of its settings');
    }
  }
  return { ...diskimage, digest, module };
}

/** A disk image that the configuration no longer has. */
function absentDiskImage(
  name: string,
  { 'elements-dir': elementsDir, 'script-dir': scriptDir }: Configuration,
): DiskImage & Pick<DiskImageConfiguration, 'builder' | 'settings'> {
  return {
    name,
    formats: [],
    builder: '',
    settings: {},
    ...(elementsDir && { elementsDir }),
    ...(scriptDir && { scriptDir }),
  };
}

function notConfigured(name: string, { configuration }: Site, why: string): CommandError {
  const message = `disk image "${name}" is not in ${configuration.file}, and ${why}; add the disk image again`;
  return new CommandError(message, { exitReason: 'not-found' });
}

/** The recorded directories; those of today if one of them is gone. */
function directoryKey<K extends string>(
  key: K,
  recorded: string | undefined,
  today: string | undefined,
): { readonly [key in K]?: string } {
  const isThere = recorded?.split(':').every((path) => existsSync(path));
  const directory = isThere ? recorded : today;
  return directory === undefined ? {} : ({ [key]: directory } as { readonly [key in K]: string });
}

interface RecordedSettings {
  readonly value: unknown;
  /** Keys whose secret is unknown. */
  readonly missing: readonly string[];
}

function recordedSettings(
  recorded: BuildFacts,
  settings: Readonly<Record<string, unknown>> | undefined,
  { module, today, site }: { readonly module: BuilderModule; readonly today: Today; readonly site: Site },
): RecordedSettings {
  const { name, builder } = today;
  const isReadable = module.read === undefined || module.written !== undefined;
  if (settings === undefined || !isReadable) {
    if (builder === module.type || builder === '') return { value: today.settings, missing: [] };
    throw new CommandError(
      `disk image "${name}" had the builder "${module.type}", which cannot use recorded settings; ` +
        `write "builder: ${module.type}" and its settings into ${site.configuration.file}`,
    );
  }
  const todays = builder === module.type && isMapping(today.settings) ? today.settings : {};
  const { values, missing } = completed(settings, todays);
  if (missing.length > 0 && builder === '') return { value: values, missing };
  const context = contextOf(name, site);
  return { value: understood(recorded, () => checkedSettings(module, values, context)), missing };
}

type Today = ReturnType<typeof absentDiskImage>;

/** Checks settings as those of a file are checked, and reads them. @throws Error with the reason */
function checkedSettings(
  module: BuilderModule,
  settings: Readonly<Record<string, unknown>>,
  context: SettingsContext,
): unknown {
  const schema: ObjectSchema = module.settings;
  // A key that this version does not know would be ignored.
  const strict = new JsonReader({ ...schema, additionalProperties: schema.additionalProperties ?? false });
  const source = strict.check(module.written?.(settings) ?? settings, 'settings') as object;
  const values = ownSettings(schema, source, context.absolute);
  for (const { pointer, reason, remedy, severity = 'error' } of module.check?.(values, context) ?? []) {
    if (severity !== 'warning')
      throw new Error(`settings${pointer.replaceAll('/', '.')} ${reason}; ${remedy}`);
  }
  return module.read?.(values, context) ?? values;
}

function contextOf(name: string, { configuration }: Site): SettingsContext {
  const { file, providers, instanceProviders, 'script-dir': scriptDir } = configuration;
  const all = [...instanceProviders, ...providers];
  return {
    name,
    providers: new Map(all.map((provider) => [provider.name, provider.module])),
    cloudImages: (provider) =>
      all.findLast((one) => one.name === provider)?.cloudImages.map((image) => image.name) ?? [],
    ...(scriptDir && { scriptDir }),
    absolute: (path) => resolve(dirname(file), path),
  };
}

/** Says for an error in recorded values which version may understand them. */
function understood<T>({ imageName, builderVersions }: BuildFacts, read: () => T): T {
  try {
    return read();
  } catch (cause) {
    const { 'nodepool-builder': version } = builderVersions;
    const remedy =
      version === undefined || version === packageVersion()
        ? ''
        : `; nodepool-builder ${version} recorded them: compare with that version`;
    throw new CommandError(
      `the recorded settings of disk image "${imageName}" cannot be used: ${messageOf(cause)}${remedy}`,
      { cause },
    );
  }
}
