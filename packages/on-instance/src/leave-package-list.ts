import { writeFile } from 'node:fs/promises';
import { ImageError } from '@nodepool-builder/image-builder';
import { type FullBuildContext, withTimeout } from '@nodepool-builder/image-builder/internal';
import type { Machine } from './machine.ts';
import type { ScriptLanguage } from './script-language.ts';

/** Time limit for the package list of a machine, in seconds. */
const TIME_LIMIT = 120;

/** Maximum length of a list in characters, which is ten times that of a list with 10,000 packages. */
const MAX_LENGTH = 8 * 2 ** 20;

/**
 * Writes a list of the machine's packages if the build requests one. A failure is only logged, because the image is
 * good without the list.
 */
export async function leavePackageList(
  machine: Pick<Machine, 'run'>,
  { listPackages }: Pick<ScriptLanguage, 'listPackages'>,
  { packageList, signal, log }: Pick<FullBuildContext, 'packageList' | 'signal' | 'log'>,
): Promise<void> {
  if (packageList === undefined || listPackages === undefined) return;
  try {
    const lines: string[] = [];
    let length = 0;
    const onLine = (line: string): void => {
      length += line.length + 1;
      if (length <= MAX_LENGTH) lines.push(line);
    };
    const script = await listPackages();
    await withTimeout(
      TIME_LIMIT,
      signal,
      async (stop) => await machine.run('the package list', 'packages', script, { signal: stop, onLine }),
      () => new ImageError('instance-failed', `the machine listed no packages within ${TIME_LIMIT} s`),
    );
    if (length > MAX_LENGTH) throw new ImageError('command-failed', 'the package list is too long');
    await writeFile(packageList, lines.join('\n'));
  } catch (error) {
    signal.throwIfAborted();
    log(`the image has no package list: ${String(error)}`);
  }
}
