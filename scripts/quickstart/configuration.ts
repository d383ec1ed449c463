import { dirname, resolve } from 'node:path';
import { dump, load } from 'js-yaml';
import type { AvailableDebian } from './debian-mirror.ts';

/** What of the template is read or replaced here. */
interface NodepoolYaml {
  readonly 'images-dir': string;
  readonly 'build-log-dir': string;
  readonly 'elements-dir': string;
  readonly manager: { readonly store: string };
  readonly diskimages: readonly { readonly 'env-vars': Readonly<Record<string, string>> }[];
  readonly providers: readonly { readonly directory: string }[];
}

/** What this machine adds to the template. */
export interface MachineSettings {
  /** Where the embedded job server shall listen on loopback. */
  readonly port: number;
  readonly debian: AvailableDebian;
  /** Absolute path: where diskimage-builder keeps what it downloads. */
  readonly cacheDirectory: string;
}

/**
 * The `nodepool.yaml` of the quickstart for this machine. Its paths are absolute, so that it can be used from
 * anywhere.
 *
 * @param templateFile - absolute path of the template: its relative paths count from there
 */
export function quickstartConfiguration(
  template: string,
  templateFile: string,
  { port, debian, cacheDirectory }: MachineSettings,
): string {
  const source = load(template) as NodepoolYaml;
  const absolute = (path: string): string => resolve(dirname(templateFile), path);
  const configuration = {
    ...source,
    'images-dir': absolute(source['images-dir']),
    'build-log-dir': absolute(source['build-log-dir']),
    'elements-dir': absolute(source['elements-dir']),
    'gearman-servers': [{ host: '127.0.0.1', port }],
    manager: { ...source.manager, store: absolute(source.manager.store) },
    diskimages: source.diskimages.map((diskimage) => ({
      ...diskimage,
      release: debian.release,
      'env-vars': { ...diskimage['env-vars'], DIB_IMAGE_CACHE: cacheDirectory, ...debian.envVars },
    })),
    providers: source.providers.map((provider) => ({
      ...provider,
      directory: absolute(provider.directory),
    })),
  };
  return `# Written by "npm run quickstart" from ${templateFile}\n${dump(configuration)}`;
}

/** The same without disk images, and without providers that use them: what there is of them is not wanted any more. */
export function withoutImages(configuration: string): string {
  const source = load(configuration) as NodepoolYaml;
  return dump({
    ...source,
    diskimages: [],
    providers: source.providers.map((provider) => ({ ...provider, images: [] })),
  });
}
