import { accessSync, constants, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { errnoOf } from '../system-error.ts';

/** Search path of execvp(3) without PATH. */
const DEFAULT_PATH = '/bin:/usr/bin';

/** Finds a command as execvp(3) does. Returns its path, or the error code of execvp. */
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
      // As in execvp: EACCES counts only if no other directory has the command.
      if (command.includes('/') || !ABSENT.has(found)) code = found;
    }
  }
  return { code };
}

/** Codes for a directory without the command. */
const ABSENT: ReadonlySet<string> = new Set(['ENOENT', 'ENOTDIR']);
