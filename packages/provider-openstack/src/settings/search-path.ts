import { join, resolve } from 'node:path';
import type { SettingsPlace } from './settings-request.ts';

/** Where files are looked for. */
type SearchPlace = Omit<SettingsPlace, 'warn'>;

/** The three kinds of files, by their names without the suffix. */
export type FileKind = 'clouds' | 'secure' | 'clouds-public';

/** The variable that names a file of that kind, which is tried first. */
export const FILE_VARIABLES: Readonly<Partial<Record<FileKind, string>>> = {
  clouds: 'OS_CLIENT_CONFIG_FILE',
  secure: 'OS_CLIENT_SECURE_FILE',
};

const SUFFIXES = ['.yaml', '.yml', '.json'];

/** Where files are looked for, in this order; the first file that can be read is the only one used. */
export function searchDirectories(place: SearchPlace): readonly string[] {
  const { env, home, cwd } = place;
  const site = (env.XDG_CONFIG_DIRS || '/etc/xdg').split(':').filter((directory) => directory !== '');
  return [
    ...new Set([
      cwd,
      join(env.XDG_CONFIG_HOME || join(home, '.config'), 'openstack'),
      join(home, '.config', 'openstack'),
      ...site.map((directory) => join(directory, 'openstack')),
      '/etc/openstack',
    ]),
  ];
}

/** The file that a variable names, absolute. */
export function namedFile(kind: FileKind, place: SearchPlace): string | undefined {
  const variable = FILE_VARIABLES[kind];
  const named = variable === undefined ? undefined : place.env[variable];
  return named ? resolve(place.cwd, named) : undefined;
}

/** Every file that `loadCloudSettings` reads, or would read if it were there. */
export function cloudSettingsFiles(place: SearchPlace): readonly string[] {
  return (['clouds', 'secure', 'clouds-public'] as const).flatMap((kind) => candidates(kind, place));
}

/** Every file of that kind that would do, in the order in which they are tried. */
export function candidates(kind: FileKind, place: SearchPlace): readonly string[] {
  const found = searchDirectories(place).flatMap((directory) =>
    SUFFIXES.map((suffix) => join(directory, kind + suffix)),
  );
  const named = namedFile(kind, place);
  return named === undefined ? found : [named, ...found];
}
