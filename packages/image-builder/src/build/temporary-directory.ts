import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { BuildContext } from '../context.ts';

/**
 * Creates a private directory for the temporary files of a build's commands.
 *
 * @param parent the operator's choice; undefined or empty for a place beside the image
 */
export async function temporaryDirectory(context: BuildContext, parent: string | undefined): Promise<string> {
  if (parent !== undefined && parent !== '') return await context.temporaryDirectory(parent);
  const path = join(context.directory, 'tmp');
  await mkdir(path);
  return path;
}
