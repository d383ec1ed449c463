import { accessSync, constants, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { errnoOf } from '../system-error.ts';

/** Where execvp(3) searches if there is no PATH. */
const DEFAULT_PATH = '/bin:/usr/bin';

/** The path at which execvp(3) finds a command, or the code of the error with which it fails. */
export function findProgram(
  command: string,
  searchPath: string = DEFAULT_PATH,
  cwd = '/',
): { readonly path: string } | { readonly code: string } {
  const directories = command.includes('/') ? [''] : searchPath.split(':');
  let code = 'ENOENT';
  for (const directory of directories) {
    const path = resolve(cwd, directory, command);
    try {
      accessSync(path, constants.X_OK);
      if (statSync(path).isFile()) return { path };
      code = 'EACCES';
    } catch (error) {
      const found = errnoOf(error) ?? 'ENOENT';
      // As execvp does: a file that may not be executed counts only if no other directory has one.
      if (command.includes('/') || !ABSENT.has(found)) code = found;
    }
  }
  return { code };
}

/** The directory does not have the command. */
const ABSENT: ReadonlySet<string> = new Set(['ENOENT', 'ENOTDIR']);
