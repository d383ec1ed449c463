import { dirname, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import type { Diagnostic } from '@nodepool-builder/image-builder';
import { ModuleError } from '../terms/module-error.ts';
import { isMapping } from '../yaml/yaml-document.ts';
import { type Modules, OPTIONAL_PACKAGES } from './modules.ts';
import { importPlugin, isMissing, MissingPackageError } from './plugin-import.ts';

/** The plugins of a process. A reload of the configuration does not load code. */
export interface LoadedPlugins {
  /** Packages of optional providers, and `plugins` of the configuration. */
  readonly names: readonly string[];
  /** All modules, including the plugins' modules. */
  readonly modules: Modules;
}

/** Result of {@link loadPlugins}. */
export interface PluginsResult extends LoadedPlugins {
  readonly diagnostics: readonly Diagnostic[];
}

/**
 * Loads the packages of a configuration's optional providers, and its plugins.
 *
 * @param file absolute path of the configuration: packages are looked up next to this program, then from its directory
 * @param modules the set to which the plugins are added
 */
export async function loadPlugins(document: unknown, file: string, modules: Modules): Promise<PluginsResult> {
  const plugins = pluginsOf(document);
  const diagnostics: Diagnostic[] = [];
  let all = modules;
  for (const { name, pointer } of plugins) {
    try {
      const exported = await importPlugin(name, file);
      all = all.with(Array.isArray(exported) ? exported : [exported]);
    } catch (error) {
      diagnostics.push({ pointer, ...explain(error, name, file) });
    }
  }
  return { names: plugins.map(({ name }) => name), modules: all, diagnostics };
}

/** Keeps the plugins of this process. Warns if a reloaded configuration has others. */
export function keepPlugins(document: unknown, { names, modules }: LoadedPlugins): PluginsResult {
  const reason = 'differs from the plugins that this process has loaded';
  const remedy = 'restart nodepool-builder to load them';
  const changed: Diagnostic = { pointer: '/plugins', reason, remedy, severity: 'warning' };
  const wanted = pluginsOf(document).map(({ name }) => name);
  const isSame = isDeepStrictEqual(wanted, names);
  return { names, modules, diagnostics: isSame ? [] : [changed] };
}

interface Plugin {
  /** Name of the package, or its path. */
  readonly name: string;
  /** JSON pointer of the configuration that needs it. */
  readonly pointer: string;
}

/** Returns the plugins of a document. The schema reports other shapes. */
function pluginsOf(document: unknown): readonly Plugin[] {
  const { providers, plugins } = isMapping(document) ? document : {};
  const listed = (Array.isArray(plugins) ? plugins : []).flatMap((name: unknown, index) =>
    typeof name === 'string' ? [{ name, pointer: `/plugins/${index}` }] : [],
  );
  const optional = (Array.isArray(providers) ? providers : []).flatMap((entry: unknown, index) => {
    const type = isMapping(entry) && typeof entry.type === 'string' ? entry.type : '';
    const name = Object.hasOwn(OPTIONAL_PACKAGES, type) ? OPTIONAL_PACKAGES[type] : undefined;
    return name === undefined ? [] : [{ name, pointer: `/providers/${index}/type` }];
  });
  const byName = Map.groupBy([...optional, ...listed], ({ name }) => name);
  return [...byName.values()].flatMap(([first]) => first ?? []);
}

function explain(error: unknown, name: string, file: string): Pick<Diagnostic, 'reason' | 'remedy'> {
  const plugin = JSON.stringify(name);
  if (error instanceof ModuleError) return { reason: `${plugin}: ${error.reason}`, remedy: error.remedy };
  if (error instanceof MissingPackageError) {
    return { reason: `${plugin} is not installed`, remedy: `run "npm install ${name}" in ${dirname(file)}` };
  }
  const path = resolve(dirname(file), name);
  if (isMissing(error) && error.url === pathToFileURL(path).href) {
    return { reason: `${plugin} does not exist`, remedy: `create the file ${path}, or correct the path` };
  }
  const [line = ''] = String(error).split('\n');
  const place = placeOf(error);
  const reason = `${plugin} cannot be loaded: ${line}${place === undefined ? '' : ` (${place})`}`;
  return { reason, remedy: 'correct the plugin, or remove it from the list' };
}

/** Location at which an error was thrown, unless the resolution here threw it. */
function placeOf(error: unknown): string | undefined {
  const [place] = /file:\/\/\S+?:\d+/.exec((error instanceof Error && error.stack) || '') ?? [];
  return place?.includes('/plugin-import.') ? undefined : place;
}
