import { createHash } from 'node:crypto';
import type { BuildContext } from '@nodepool-builder/image-builder';
import { stepEnvironment } from './environment.ts';
import { piecesOf } from './pieces-of.ts';
import type { RemoteFile } from './remote-shell.ts';
import { scriptFiles } from './script-files.ts';
import { SCRIPT_LANGUAGES } from './script-languages.ts';
import type { OnInstance } from './settings.ts';

/**
 * Digest of the inputs of an image: the settings, the environment of the steps, and the content of the scripts. Timeouts
 * and the handling of failed builds do not count.
 *
 * @throws ImageError `invalid-configuration`, `directory-not-usable`
 */
export async function recipeOf(
  settings: OnInstance,
  context: Pick<BuildContext, 'environment' | 'diskimage'>,
): Promise<string> {
  const what = { ...settings, bootTimeout: undefined, stopTimeout: undefined, keepOnFailure: undefined };
  const { scriptDirectory } = SCRIPT_LANGUAGES[settings.shell];
  const variables = stepEnvironment(context, scriptDirectory);
  const environment = Object.keys(variables)
    .toSorted()
    .map((name) => [name, variables[name]]);
  const scripts: string[] = [];
  for (const { path, content } of await scriptFiles(context.diskimage.scriptDir)) {
    scripts.push(path, await digestOf(content));
  }
  return createHash('sha256')
    .update(JSON.stringify([what, environment, scripts]))
    .digest('hex');
}

async function digestOf(content: RemoteFile['content']): Promise<string> {
  const hash = createHash('sha256');
  for await (const piece of piecesOf(content)) hash.update(piece);
  return hash.digest('hex');
}
