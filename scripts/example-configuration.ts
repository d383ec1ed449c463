import { dirname, resolve } from 'node:path';
import { dump, load } from 'js-yaml';

/** Keys of a template whose values are paths. */
const PATHS = new Set([
  'images-dir',
  'build-log-dir',
  'elements-dir',
  'script-dir',
  'store',
  'base-image',
  'kernel',
  'initrd',
  'directory',
]);

/** Settings of this machine that replace values in a template. */
export interface ExampleMachine {
  /** Port of the embedded job server on loopback. */
  readonly port: number;
  /** Command that writes the file, named in its first line. */
  readonly command: string;
}

/**
 * Returns the `nodepool.yaml` of an example for this machine. Its paths are absolute, so it works from any directory.
 *
 * @param templateFile - absolute path of the template: its relative paths are resolved against its directory
 * @param replaced - keys that differ from the template
 */
export function exampleConfiguration(
  template: string,
  templateFile: string,
  { port, command }: ExampleMachine,
  replaced: object = {},
): string {
  const absolute = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(absolute);
    if (typeof value !== 'object' || value === null) return value;
    const entries = Object.entries(value as Record<string, unknown>);
    return Object.fromEntries(
      entries.map(([key, inner]) =>
        PATHS.has(key) && typeof inner === 'string'
          ? [key, resolve(dirname(templateFile), inner)]
          : [key, absolute(inner)],
      ),
    );
  };
  const configuration = {
    ...(absolute({ ...(load(template) as object), ...replaced }) as object),
    'gearman-servers': [{ host: '127.0.0.1', port }],
  };
  return `# Written by "${command}" from ${templateFile}\n${dump(configuration)}`;
}
