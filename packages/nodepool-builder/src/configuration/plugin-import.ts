import { existsSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { dirname, isAbsolute, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { foreignPart } from '@nodepool-builder/image-builder/internal';
import { ModuleError } from '../terms/module-error.ts';

/**
 * Imports the default export of a plugin.
 *
 * @param name name of a package, or a path relative to the configuration
 * @param file absolute path of the configuration
 * @throws ModuleError if another user can change the plugin, or it exports nothing; MissingPackageError; errors of the
 * plugin
 */
export async function importPlugin(name: string, file: string): Promise<unknown> {
  hookResolution();
  const { default: exported } = (await import(specifierOf(name, file))) as { readonly default?: unknown };
  if (exported !== undefined) return exported;
  throw new ModuleError('it has no default export', 'export a module, or a list of modules, as default');
}

/** A package in `plugins` that is installed neither next to this program nor where the configuration is. */
export class MissingPackageError extends Error {}

/** Returns whether Node.js reports a missing file or package. */
export function isMissing(error: unknown): error is Error & { readonly url?: string } {
  return error instanceof Error && 'code' in error && error.code === 'ERR_MODULE_NOT_FOUND';
}

/** Prefix of the specifier with which a package in `plugins` is imported. */
const SCHEME = 'nodepool-plugin:';

/** Name of a package, optionally with the path of a file in it. It is neither a URL nor an entry of `imports`. */
const PACKAGE = /^((?:@[\w.~-]+\/)?[\w.~-]+)(?:\/[\w./~-]+)?$/;

/** Packages of this project. */
const OWN_PACKAGE = /^(?:@nodepool-builder\/|nodepool-builder$)/;

function specifierOf(name: string, file: string): string {
  if (isAbsolute(name) || /^\.\.?\//.test(name)) {
    const path = resolve(dirname(file), name);
    if (existsSync(path)) refuseForeign(path);
    const { href } = pathToFileURL(path);
    checkedModules.add(href);
    return href;
  }
  if (!PACKAGE.test(name)) {
    throw new ModuleError('it is not a package or a path', 'begin a path with "/" or "./"');
  }
  return `${SCHEME}?${new URLSearchParams({ name, from: pathToFileURL(file).href }).toString()}`;
}

/** URLs of modules that are not installed next to this program. Their imports are also checked. */
const checkedModules = new Set<string>();

/**
 * @throws ModuleError if a user other than root and this one can change a file, because this user would run that user's
 * code
 */
function refuseForeign(path: string): void {
  const reason = foreignPart(path);
  if (reason === undefined) return;
  throw new ModuleError(
    `${path} is not loaded: ${reason}`,
    'install it next to nodepool-builder, or let only root and this user write there',
  );
}

let isHooked = false;

/**
 * Resolves packages of plugins from here, then from the directory of the configuration. A plugin that imports a package
 * of this project gets the running copy, because a second copy would have its own classes, such as a second
 * `ImageError`.
 */
function hookResolution(): void {
  if (isHooked) return;
  isHooked = true;
  const here = import.meta.url;
  registerHooks({
    resolve: (specifier, context, nextResolve) => {
      const plugin = specifier.startsWith(SCHEME) ? new URL(specifier).searchParams : undefined;
      const name = plugin?.get('name') ?? specifier;
      const importer = plugin?.get('from') ?? context.parentURL;
      const resolveFrom = (parentURL: string | undefined): ReturnType<typeof nextResolve> =>
        nextResolve(name, { ...context, parentURL });
      if (plugin !== undefined || OWN_PACKAGE.test(specifier)) {
        try {
          return resolveFrom(here);
        } catch (error) {
          if (!isMissing(error)) throw error;
        }
      }
      try {
        const found = resolveFrom(importer);
        if (plugin === undefined && !checkedModules.has(importer ?? '')) return found;
        if (found.url.startsWith('file:')) refuseForeign(fileURLToPath(found.url));
        checkedModules.add(found.url);
        return found;
      } catch (error) {
        throw plugin !== undefined && isMissing(error)
          ? new MissingPackageError(name, { cause: error })
          : error;
      }
    },
  });
}
