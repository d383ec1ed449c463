import { join } from 'node:path';
import { dump, load } from 'js-yaml';
import { exampleConfiguration } from '../example-configuration.ts';

/** Values that replace those in the template. */
interface NodepoolYaml {
  readonly diskimages: readonly { readonly 'env-vars': Readonly<Record<string, string>> }[];
  readonly providers: readonly object[];
}

/** Settings of this machine for the template. */
export interface MachineSettings {
  /** Port of the embedded job server on loopback. */
  readonly port: number;
  /** HTTP proxy that fetches Debian packages. */
  readonly proxy: string;
  /** Absolute path of a directory for the lock files and the cache of diskimage-builder's Python library. */
  readonly cacheDirectory: string;
}

/**
 * Returns the `nodepool.yaml` of the quickstart for this machine, see {@link exampleConfiguration}.
 *
 * @param templateFile - absolute path of the template: its relative paths are resolved against its directory
 */
export function quickstartConfiguration(
  template: string,
  templateFile: string,
  { port, proxy, cacheDirectory }: MachineSettings,
): string {
  const source = load(template) as NodepoolYaml;
  const diskimages = source.diskimages.map((diskimage) => ({
    ...diskimage,
    'env-vars': { ...diskimage['env-vars'], ...cacheVariables(cacheDirectory), http_proxy: proxy },
  }));
  const machine = { port, command: 'npm run quickstart' };
  return exampleConfiguration(template, templateFile, machine, { diskimages });
}

/** Redirects caches of diskimage-builder and its Python library, which otherwise write to the user's home. */
function cacheVariables(directory: string): Readonly<Record<string, string>> {
  return {
    DIB_LOCKFILES: join(directory, 'locks'),
    XDG_CACHE_HOME: join(directory, 'xdg'),
  };
}

/** Returns the configuration without disk images and their uses in providers, so that all images are deleted. */
export function withoutImages(configuration: string): string {
  const source = load(configuration) as NodepoolYaml;
  return dump({
    ...source,
    diskimages: [],
    providers: source.providers.map((provider) => ({ ...provider, images: [] })),
  });
}
