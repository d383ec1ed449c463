import { createHash } from 'node:crypto';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type BuildContext, ImageError } from '@nodepool-builder/image-builder';
import { asImageError, checkedVariables } from '@nodepool-builder/image-builder/internal';
import type { OnInstance } from './on-instance-settings.ts';
import { piecesOf, type RemoteFile } from './remote-shell.ts';
import { WORK_DIRECTORY } from './script-language.ts';

const VARIABLE_NAME = /^[A-Za-z_]\w*$/;

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

/**
 * Variables of steps in addition to those of the machine: `NODEPOOL_*` of the builder's environment, which nodepool's
 * scripts expect, and the `env-vars` of the disk image.
 *
 * @param scriptDirectory path on the machine
 * @throws ImageError `invalid-configuration`
 */
export function stepEnvironment(
  { environment, diskimage }: Pick<BuildContext, 'environment' | 'diskimage'>,
  scriptDirectory: string,
): Record<string, string> {
  const inherited = Object.entries(environment).filter(([name]) => /^NODEPOOL_\w+$/.test(name));
  const variables = {
    ...Object.fromEntries(inherited),
    NODEPOOL_SCRIPTDIR: scriptDirectory,
    ...checkedVariables(diskimage),
  };
  return Object.fromEntries(
    Object.entries(variables).flatMap(([name, value]) => {
      if (value === undefined) return [];
      if (VARIABLE_NAME.test(name)) return [[name, value]];
      throw new ImageError(
        'invalid-configuration',
        `disk image "${diskimage.name}": "${name}" is not a valid variable name; correct it in env-vars`,
      );
    }),
  );
}

/** Settings that do not change an image. */
const WITHOUT_EFFECT: readonly string[] = ['boot-timeout', 'stop-timeout', 'keep-on-failure'];

/**
 * Digest of the inputs of an image: the settings, the environment of the steps, and the content of the scripts.
 * Timeouts and the handling of failed builds do not count.
 *
 * @throws ImageError `invalid-configuration`, `directory-not-usable`
 */
export async function configurationDigest(
  settings: OnInstance,
  context: Pick<BuildContext, 'environment' | 'diskimage'>,
  scriptDirectory: string,
): Promise<string> {
  const what = sortedEntries(settings).filter(([name]) => !WITHOUT_EFFECT.includes(name));
  const environment = sortedEntries(stepEnvironment(context, scriptDirectory));
  const scripts: string[] = [];
  for (const { path, content } of await scriptFiles(context.diskimage.scriptDir)) {
    const hash = createHash('sha256');
    for await (const piece of piecesOf(content)) hash.update(piece);
    scripts.push(path, hash.digest('hex'));
  }
  return createHash('sha256')
    .update(JSON.stringify([what, environment, scripts]))
    .digest('hex');
}

function sortedEntries(values: object): [string, unknown][] {
  return Object.entries(values).toSorted(([a], [b]) => (a < b ? -1 : 1));
}
