import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { unlessMissing } from './system-error.ts';
import type { Logger } from './types.ts';

/** Character to which Node.js decodes bytes that are not UTF-8. */
export const NOT_UTF8 = '\uFFFD';

/**
 * Lists the names in a directory; none if it is missing. A name that is not UTF-8 is skipped, because its decoded form
 * would be another file's name.
 *
 * @param logger gets a warning about such names
 */
export async function utf8Names(directory: string, logger?: Logger): Promise<readonly string[]> {
  const names = (await unlessMissing(readdir(directory))) ?? [];
  return names.filter((name) => {
    const isUtf8 = !name.includes(NOT_UTF8);
    if (!isUtf8)
      logger?.warn(`ignoring ${JSON.stringify(join(directory, name))}: its name is not UTF-8; remove it`);
    return isUtf8;
  });
}

const SEPARATOR = Buffer.from('/');

/**
 * Lists the paths of a directory's entries as bytes, because the names in a tree that others made need not be UTF-8.
 */
export async function entryPaths(directory: Buffer): Promise<readonly Buffer[]> {
  const names = await readdir(directory, { encoding: 'buffer' });
  return names.map((name) => Buffer.concat([directory, SEPARATOR, name]));
}
