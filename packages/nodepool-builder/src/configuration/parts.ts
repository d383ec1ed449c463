import { dirname, resolve } from 'node:path';
import type { SettingsContext, SettingsOf } from '@nodepool-builder/image-builder';
import { readSettings } from '@nodepool-builder/image-builder/internal';
import { ownSettings } from '../yaml/values.ts';
import type { YamlDocument } from '../yaml/yaml-document.ts';
import { cloudImagesOf } from './cloud-images.ts';
import type { GeneralSettings } from './configuration.ts';
import { type DiskImageEntry, diskImageEntries } from './disk-images.ts';
import { MANAGER } from './manager.ts';
import type { Modules } from './modules.ts';
import { implicitProviders, type ListedProvider, listedProviders } from './provider.ts';
import { type ConfigurationSource, GENERAL } from './schema.ts';

/** A file that its schema accepts: its keys with defaults and absolute paths, and its entries with their modules. */
export interface ConfigurationParts {
  /** The file's mapping, with `parent` resolved and without abstract disk images. */
  readonly source: ConfigurationSource;
  readonly modules: Modules;
  readonly general: GeneralSettings;
  readonly manager: SettingsOf<typeof MANAGER>;
  readonly diskimages: readonly DiskImageEntry[];
  readonly providers: readonly ListedProvider[];
  /** Providers without an entry in the file. */
  readonly implicit: readonly ListedProvider[];
  /** Context for the settings of modules. */
  readonly context: Omit<SettingsContext, 'name'>;
  /** Returns the line of a JSON pointer. */
  readonly lineOf: (pointer: string) => number;
}

/** Reads the parts of a file. @param source without errors of the schema */
export function readParts(
  document: YamlDocument,
  source: ConfigurationSource,
  modules: Modules,
): ConfigurationParts {
  const absolute = (path: string): string => resolve(dirname(document.file), path);
  const general = readGeneral(source, absolute);
  const providers = listedProviders(source.providers ?? [], modules.providers, absolute);
  const implicit = implicitProviders(modules.providers, absolute);
  return {
    source,
    modules,
    general,
    manager: readSettings(MANAGER, source.manager ?? {}, absolute),
    diskimages: diskImageEntries(source, modules, absolute),
    providers,
    implicit,
    context: {
      providers: new Map([...implicit, ...providers].map(({ name, module }) => [name, module])),
      cloudImages: (provider) => {
        const found = providers.findLast(({ name }) => name === provider);
        return found === undefined
          ? []
          : cloudImagesOf(found, source['cloud-images']).map(({ name }) => name);
      },
      ...(general['script-dir'] && { scriptDir: general['script-dir'] }),
      absolute,
    },
    lineOf: (pointer) => document.positionOf(pointer).line,
  };
}

/** Reads the top-level keys that do not belong to a module. */
function readGeneral(source: ConfigurationSource, absolute: (path: string) => string): GeneralSettings {
  const general = ownSettings(GENERAL, source, absolute);
  const { 'elements-dir': elementsDir, 'script-dir': scriptDir } = general;
  return {
    ...general,
    // diskimage-builder accepts several directories, separated as in PATH.
    'elements-dir': elementsDir ? elementsDir.split(':').map(absolute).join(':') : null,
    'script-dir': scriptDir ? absolute(scriptDir) : null,
    'build-environment': general['build-environment'] ?? [],
    'public-variables': general['public-variables'] ?? [],
    'gearman-servers': general['gearman-servers'] ?? [],
    notifications: general.notifications ?? [],
  };
}
