import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { asImageError } from '@nodepool-builder/image-builder/module-kit';
import type { RemoteFile } from './remote-shell.ts';
import { WORK_DIRECTORY } from './script-language.ts';

/**
 * Lists the files of `script-dir` and its directories, with their paths on a machine.
 *
 * @throws ImageError `directory-not-usable`
 */
export async function scriptFiles(scriptDirectory: string | undefined): Promise<RemoteFile[]> {
  if (scriptDirectory === undefined) return [];
  try {
    const names = await readdir(scriptDirectory, { recursive: true });
    const files: RemoteFile[] = [];
    for (const name of names.toSorted()) {
      const file = join(scriptDirectory, name);
      if (!(await stat(file)).isFile()) continue;
      files.push({ path: `${WORK_DIRECTORY}/scripts/${name}`, content: { file } });
    }
    return files;
  } catch (error) {
    throw asImageError(error, `reading script-dir "${scriptDirectory}"`);
  }
}
