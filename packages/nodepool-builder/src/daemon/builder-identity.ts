import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { unlessMissing, writeDurably } from '@nodepool-builder/image-builder/internal';

const UUID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/;

/**
 * Returns the UUID that distinguishes this builder's instances from other builders' in the same cloud. It is created
 * once and stays as long as the directory does.
 *
 * @param directory `images-dir`; `.nodepool-builder` exists in it
 */
export async function builderIdentity(directory: string): Promise<string> {
  const path = join(directory, '.nodepool-builder/builder-id');
  const known = (await unlessMissing(readFile(path, 'utf8')))?.trim() ?? '';
  if (UUID.test(known)) return known;
  const created = randomUUID();
  await writeDurably(path, `${created}\n`);
  return created;
}
