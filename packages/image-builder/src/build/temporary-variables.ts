import { mkdir } from 'node:fs/promises';
import type { DiskImage } from '../disk-image.ts';
import { ImageError } from '../errors.ts';
import { type Environment, TEMPORARY_VARIABLES } from '../process/inherited-environment.ts';
import type { Staging } from '../repository/staging.ts';
import { checkedVariables } from './command-environment.ts';

/**
 * Variables that every command of a build gets: the variable of mktemp and most programs, and the variable of
 * diskimage-builder. TMP and TEMP are replaced only if they have a value. Programs that read them prefer TMPDIR.
 * disk-image-create, which removes only TMPDIR, would pass them into the chroot, where the directory does not exist.
 */
const ALWAYS: readonly string[] = ['TMPDIR', 'TMP_DIR'];

/**
 * Creates private directories for the temporary files of a build, and returns the variables that name them. A value of
 * the site chooses the parent. A variable without a value gets the directory of another variable, or a directory in
 * `staging`. Each directory is removed with `staging`.
 *
 * @param environment variables that commands inherit; `env-vars` override them
 * @throws ImageError `directory-not-usable`, `invalid-configuration`
 */
export async function temporaryVariables(
  staging: Staging,
  diskimage: DiskImage,
  environment: Environment,
): Promise<Readonly<Record<string, string>>> {
  const all = { ...environment, ...checkedVariables(diskimage) };
  const directories = new Map<string, string>();
  const variables: Record<string, string> = {};
  for (const name of TEMPORARY_VARIABLES) {
    const parent = all[name];
    if (!parent) continue;
    const directory = directories.get(parent) ?? (await createBelow(parent, name));
    directories.set(parent, directory);
    variables[name] = directory;
  }
  for (const name of ALWAYS) variables[name] ??= Object.values(variables)[0] ?? (await createInStaging());
  return variables;

  async function createBelow(parent: string, name: string): Promise<string> {
    try {
      return await staging.temporaryDirectory(parent);
    } catch (cause) {
      const reason = (cause as Error).message;
      const remedy = `create "${parent}", or name another directory in ${name}`;
      const message = `${name} of disk image "${diskimage.name}" cannot be used for temporary files: ${reason}; ${remedy}`;
      throw new ImageError('directory-not-usable', message, { cause });
    }
  }

  async function createInStaging(): Promise<string> {
    const path = staging.path('tmp');
    await mkdir(path);
    return path;
  }
}
