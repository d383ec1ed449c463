import { writeFile } from 'node:fs/promises';
import { ImageError } from '@nodepool-builder/image-builder';
import { type FullBuildContext, withTimeout } from '@nodepool-builder/image-builder/module-kit';
import type { Machine } from './machine.ts';
import type { ScriptLanguage } from './script-language.ts';

/** Max seconds for which a machine may list its packages. */
const TIME_LIMIT = 120;

/** Max length of a list in characters: 10,000 packages have a tenth of it. */
const MAX_LENGTH = 8 * 2 ** 20;

/** Leaves a list of the machine's packages if the build wants one. A failure is logged: the image is good without the list. */
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
      async (stop) => await machine.run('the list of packages', 'packages', script, { signal: stop, onLine }),
      () => {
        throw new ImageError('instance-failed', `the machine listed no packages within ${TIME_LIMIT} s`);
      },
    );
    if (length > MAX_LENGTH) throw new ImageError('command-failed', 'the list of packages is too long');
    await writeFile(packageList, lines.join('\n'));
  } catch (error) {
    signal.throwIfAborted();
    log(`the image gets no list of packages: ${String(error)}`);
  }
}
