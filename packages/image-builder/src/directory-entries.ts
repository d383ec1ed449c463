import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { unlessMissing } from './system-error.ts';
import type { Logger } from './types.ts';

/** Character to which Node.js decodes bytes that are not UTF-8. */
export const NOT_UTF8 = '\uFFFD';

/**
 * Names in a directory, none if it is missing. A name that is not UTF-8 is left out: decoded, it would be another file's.
 *
 * @param logger is warned of such names
 */
export async function utf8Names(directory: string, logger?: Logger): Promise<readonly string[]> {
  const names = (await unlessMissing(readdir(directory))) ?? [];
  return names.filter((name) => {
    const isUtf8 = !name.includes(NOT_UTF8);
    if (!isUtf8)
      logger?.warn(`${JSON.stringify(join(directory, name))} stays: its name is not UTF-8; remove it`);
    return isUtf8;
  });
}

const SEPARATOR = Buffer.from('/');

/** Paths of the entries of a directory, as bytes: the names in a tree that others made need not be UTF-8. */
export async function entryPaths(directory: Buffer): Promise<readonly Buffer[]> {
  const names = await readdir(directory, { encoding: 'buffer' });
  return names.map((name) => Buffer.concat([directory, SEPARATOR, name]));
}
